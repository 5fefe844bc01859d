// Preloader: keeps a preload process ready for the workers of the next round: starts it, waits for
// its imports, renews it when imported files have changed or when it has ended, and gives it up
// when no worker can be forked safely. Each reason is logged once.
//
// Thread: the loop's; a thread of its own spawns the processes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/preload/preload_process.hpp"
#include "agent/process/spawn/spawn_thread.hpp"
#include "agent/process/worker_starter.hpp"
#include "common/lifetime.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/loop/timer.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/time.hpp"

namespace cpprun {

class Preloader {
 public:
  struct Loaded {
    std::string modules;        // "torch,numpy"
    Duration import_time{};     // that each forked worker saves
    int64_t private_bytes = 0;  // that forked workers share, and spawned ones would each hold
  };

  // Starts the first process. `descriptors`: RLIMIT_NOFILE of the workers. `warn`: gets one line
  // that says why workers are spawned.
  Preloader(boost::asio::io_context& loop, PreloadPlan plan, const rlimit& descriptors,
            std::function<void(const std::string&)> warn);
  ~Preloader();  // kills the process
  Preloader(const Preloader&) = delete;

  // Calls `done` once, when workers can be forked or it is known that they must be spawned.
  // Replaces an earlier call, whose `done` does not come any more. May call it at once.
  void prepare(std::function<void()> done);

  // Forks the workers of the next round; it outlives this object. Null: they must be spawned.
  WorkerFork worker_fork();

  const std::optional<Loaded>& loaded() const { return loaded_; }  // unset: nothing is ready

 private:
  enum class State { Importing, Ready, Checking, Down, Off };

  void start_process();
  void on_spawned();
  void end_process();
  void watch_socket();
  void watch_end();
  void on_messages();
  void on_message(const std::vector<std::string>& fields);
  void on_end();
  void on_time();
  void on_forked(const std::optional<Error>& error, int process);
  void give_up(const std::string& reason);
  void skip(const std::string& reason);
  void settle();

  boost::asio::io_context& loop_;
  const std::shared_ptr<const PreloadPlan> plan_;  // shared with the thread
  const rlimit descriptors_;
  const std::function<void(const std::string&)> warn_;
  Lifetime lifetime_;
  std::shared_ptr<PreloadProcess> process_;  // shared with forks that are under way
  const std::shared_ptr<LoopPoster> poster_ = std::make_shared<LoopPoster>(loop_);
  SpawnThread spawner_;
  std::shared_ptr<UniqueFd> spawned_socket_;  // of the process that is being spawned
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::posix::stream_descriptor end_;
  Timer timer_;
  State state_ = State::Down;
  Instant deadline_ = Instant::never();  // of the imports or the check
  std::function<void()> done_;
  std::string importing_;  // the module
  std::string refusal_;    // why workers are spawned; "": they are not
  std::optional<Loaded> loaded_;
  int failures_ = 0;  // processes that ended since the last fork
};

}  // namespace cpprun

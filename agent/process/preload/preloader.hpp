// Preloader: keeps a preload process ready for the workers of the next round: starts it, waits for
// its imports, renews it when imported files have changed or when it has ended, and gives it up
// when no worker can be forked safely. Each reason is logged once. Workers whose script imports
// none of the modules are spawned while the imports last.
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
  // Starts the first process. `descriptors`: RLIMIT_NOFILE of the workers. `warn`: gets one line
  // that has the reason why workers are spawned.
  Preloader(boost::asio::io_context& loop, PreloadPlan plan, const rlimit& descriptors,
            std::function<void(const std::string&)> warn);
  ~Preloader();  // kills the process
  Preloader(const Preloader&) = delete;

  // Calls `done` once, when workers can be forked or it is known that they must be spawned.
  // Replaces an earlier call, whose `done` does not come any more. May call it at once.
  void prepare(std::function<void()> done);

  // Forks the workers of the next round; it outlives this object.
  WorkerFork worker_fork(size_t workers);

  // Sets all but the counts of workers.
  void report(WorkerStarts& starts) const;

 private:
  struct Loaded {
    std::string modules;     // "torch,numpy"
    Duration import_time{};  // that each forked worker saves
  };
  enum class State { Importing, Ready, Checking, Down, Off };

  void start_process();
  void on_spawned();
  void end_process();
  void watch_socket();
  void watch_end();
  void on_messages();
  void on_message(const std::vector<std::string>& fields);
  void on_script(bool is_awaited);
  void on_refused(const std::vector<std::string>& fields);
  void on_end();
  void on_time();
  void on_forked(const std::optional<Error>& error, int process, Duration import_time);
  void give_up(SpawnReason kind, const std::string& reason);
  void end_permanently(SpawnReason kind, const std::string& reason);
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
  std::string importing_;                            // the module
  std::string refusal_;                              // why workers are spawned; "": they are not
  SpawnReason spawn_reason_ = SpawnReason::Process;  // the kind of refusal_
  // Workers wait for the imports. Unset: the process has not read the script yet.
  std::optional<bool> is_awaited_;
  std::optional<Loaded> loaded_;  // unset: nothing is ready
  Duration saved_time_{};         // by all forks so far
  int failures_ = 0;              // processes that ended since the last fork
};

}  // namespace cpprun

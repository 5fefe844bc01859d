// RoundOutput: the output of a round's workers that passes the agent, from the first stream until
// all of it is written. Starts the output thread when it is needed. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/process/streams/output.hpp"
#include "common/lifetime.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/loop/timer.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

class RoundOutput {
 public:
  struct Events {
    // All output of the round is written, or the wait for it is over.
    std::function<void()> on_drained;
    // As Output::Events.
    std::function<void(bool continues)> on_stdout_closed;
    std::function<void(int local_rank, std::vector<std::string> lines)> on_tail;
    // The terminals of the workers have another size.
    std::function<void()> on_resized;
  };

  // No event comes after `poster` was closed.
  RoundOutput(boost::asio::io_context& loop, std::shared_ptr<LoopPoster> poster, Events events);

  // Starts the output thread, once. Error: no descriptors are left.
  Status open();
  void begin_round();
  // Requires: open().
  void add(std::vector<OutputStream> streams);
  void on_worker_exit(int local_rank);
  // The worker's stderr passes the agent.
  bool has_stderr(int local_rank) const { return with_stderr_.contains(local_rank); }
  // on_tail() answers with the last lines. Requires: has_stderr().
  void ask_tail(int local_rank) { output_->ask_tail(local_rank); }
  // The workers have ended, but for the survivors (by local rank). on_drained() follows. Requires:
  // !is_drained().
  void finish(std::set<int> survivors) { output_->finish(round_, std::move(survivors)); }
  // For what is left of all rounds, when no worker lives: on_drained() follows, at once if all is
  // written. Waits for a console without limit, for a log file as long as
  // limits::kOutputEndTimeout.
  void finish_all();
  // The wait for on_drained() ends after this time. No effect if is_drained().
  void limit_wait(Duration most);
  // The survivors write on, and end.
  void on_survivors_end() {
    if (output_) is_drained_ = false;
  }

  // There is no output, or all is written.
  bool is_drained() const { return is_drained_; }

 private:
  void on_drained();
  void on_finishing();
  void watch_window();
  void resize_terminals();

  const std::shared_ptr<LoopPoster> poster_;
  const Events events_;
  Lifetime lifetime_;
  Timer drain_timer_;
  boost::asio::signal_set window_signals_;
  uint64_t round_ = 0;  // counts rounds; a late answer of the output thread has an older one
  bool is_drained_ = true;
  bool is_written_ = true;            // nothing is left, not even of a round whose wait was limited
  Instant limit_ = Instant::never();  // of the wait for on_drained()
  bool has_terminals_ = false;        // a worker of any round had a terminal
  std::set<int> with_stderr_;         // local ranks
  std::unique_ptr<Output> output_;    // last member: its thread posts to the others
};

}  // namespace cpprun

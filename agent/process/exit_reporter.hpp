// ExitReporter: completes the exits of workers with their last lines and error files, and reports
// them in the kernel's order. What does not come in time is left out (exit_queue.hpp).
//
// Thread: the loop's; files are read on the I/O thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/process/exit_queue.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/loop/timer.hpp"
#include "common/thread/io_thread.hpp"

namespace cpprun {

class ExitReporter {
 public:
  struct Events {
    std::function<void(const WorkerExit&)> on_end;
    // Exits may have been reported, outside of a call of this class.
    std::function<void()> on_progress;
    // on_lines() answers with the last lines of the worker's stderr.
    std::function<void(int local_rank)> ask_tail;
  };
  // Where the rest of an exit comes from.
  struct Sources {
    bool has_lines = false;                 // last lines are wanted
    std::string stderr_file{};              // "": its stderr passes the agent
    std::string error_file{};               // "": there is none
    std::optional<ErrorReport> reported{};  // over the worker's channel; the file replaces it
  };

  // No event comes after `poster` was closed.
  ExitReporter(boost::asio::io_context& loop, std::shared_ptr<LoopPoster> poster,
               std::shared_ptr<IoThread> io, Events events);

  // Call report() later.
  void add(WorkerExit end, const Sources& sources);
  void on_lines(int local_rank, std::vector<std::string> lines);
  // Reports the exits that are complete, or late.
  void report();

  // All are reported.
  bool is_empty() const { return ends_.is_empty(); }

 private:
  void ask_last_lines(int local_rank, const std::string& stderr_file);
  void read_error(int pid, const std::string& path, const std::optional<ErrorReport>& reported);

  const std::shared_ptr<LoopPoster> poster_;  // shared with tasks of the I/O thread
  const std::shared_ptr<IoThread> io_;
  const Events events_;
  ExitQueue ends_;
  Timer timer_;
};

}  // namespace cpprun

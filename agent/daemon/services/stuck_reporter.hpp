// StuckReporter: describes processes that SIGKILL did not end, from /proc. It reads on a thread of
// its own, because the read may block too, and waits at most limits::kStuckReadTimeout.
//
// Thread: the loop's. Owner: the daemon. Calls no callback after its destruction.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "agent/process/diagnostics/stuck_process.hpp"
#include "common/loop/background_work.hpp"
#include "common/loop/timer.hpp"

namespace cpprun {

class StuckReporter {
 public:
  // One line per process.
  using Done = std::function<void(const std::vector<std::string>& lines)>;

  StuckReporter(boost::asio::io_context& loop, Done done)
      : done_(std::move(done)), timer_(loop, [this] { on_time(); }), background_(loop) {}

  // Describes the first limits::kStuckProcesses. No effect while an earlier call is still running.
  void inspect(std::vector<StuckProcess> processes);

 private:
  void on_time();
  void finish(const std::vector<std::string>& lines);

  Done done_;
  Timer timer_;
  std::vector<StuckProcess> processes_;  // empty: no inspection is running
  uint64_t generation_ = 0;
  BackgroundWork background_;
};

}  // namespace cpprun

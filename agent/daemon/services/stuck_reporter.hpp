// StuckReporter: finds out what the kernel shows of processes that SIGKILL did not end. It reads on
// a thread of its own, since that may block as well, and waits for it no longer than
// limits::kStuckLookTakes.
//
// Thread: the loop's. Owner: the daemon. The callback is never called after the end of this object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/daemon/loop_poster.hpp"
#include "agent/process/diagnostics/stuck_process.hpp"
#include "agent/process/timer.hpp"

namespace cpprun {

class StuckReporter {
 public:
  // One line for each process, or for those of which that was found out in time.
  using Done = std::function<void(const std::vector<std::string>& lines)>;

  StuckReporter(boost::asio::io_context& loop, Done done);
  ~StuckReporter();
  StuckReporter(const StuckReporter&) = delete;

  // Nothing, while the look before has not ended.
  void look(std::vector<StuckProcess> processes);

 private:
  void on_time();
  void end(const std::vector<std::string>& lines);

  Done done_;
  Timer timer_;
  std::vector<StuckProcess> processes_;  // empty: no look is under way
  uint64_t looks_ = 0;
  const std::shared_ptr<LoopPoster> poster_;
};

}  // namespace cpprun

// ReaperWatch: keeps the reaper process of this agent alive, and sends it until when the workers
// may run. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <string>

#include "agent/process/cleanup/reaper_handle.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

class ReaperWatch {
 public:
  explicit ReaperWatch(boost::asio::io_context& loop) : ended_(loop) {}

  // Forks the reaper process. Requires: this process has no second thread yet.
  Status start(const std::string& token);
  // From now on another one is started if something kills it.
  void watch();

  // As ReaperHandle::set_deadline().
  bool set_deadline(Instant deadline) {
    deadline_ = deadline;
    return reaper_->set_deadline(deadline);
  }
  // Workers may run at `now`.
  bool holds_worker_lease(Instant now) const { return now < deadline_; }
  // No worker is left. It ends while the agent does. No effect before start().
  void dismiss() const {
    if (reaper_) reaper_->dismiss();
  }
  // Something may be left: it ends that when the agent has ended. No effect before start().
  void leave() const {
    if (reaper_) reaper_->leave();
  }

 private:
  std::unique_ptr<ReaperHandle> reaper_;
  boost::asio::posix::stream_descriptor ended_;  // readable when the reaper process has ended
  Instant deadline_ = Instant::never();          // of the worker lease
};

}  // namespace cpprun

#include "agent/daemon/services/reaper_watch.hpp"

#include <utility>

#include "agent/process/cleanup/cgroup.hpp"
#include "common/log/log.hpp"

namespace cpprun {

Status ReaperWatch::start(const std::string& token) {
  Result<std::unique_ptr<ReaperHandle>> reaper = ReaperHandle::start(token, cgroup_folder(token));
  if (!reaper) return reaper.error();
  reaper_ = std::move(*reaper);
  return {};
}

void ReaperWatch::watch() {
  boost::system::error_code failed;
  UniqueFd end = reaper_->take_pidfd();
  ended_.assign(end.get(), failed);
  if (failed) {
    return log::warning("the reaper process is not watched: " + failed.message() +
                        "; if it is killed, no other one starts");
  }
  end.release();  // ended_ closes it
  ended_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const auto& error) {
    if (error) return;
    ended_.close();
    log::info("the reaper process was killed; starting another");
    if (Status ok = reaper_->renew(); ok) {
      watch();
    } else {
      log::warning(ok.error().text);
    }
  });
}

}  // namespace cpprun

#include "agent/daemon/round_files.hpp"

#include <utility>
#include <vector>

#include "agent/daemon/stream_routes.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {

struct RoundFiles::Prepared {
  LogFolder folder;
  Status made;
  Status opened;
  LogFiles files;

  // On the I/O thread.
  void make(const LogConfig& logs, int nproc, int attempt, int64_t round) {
    made = folder.begin_attempt(attempt, round, nproc);
    std::vector<StreamRoute> routes;
    for (int rank = 0; rank < nproc; ++rank) {
      StreamRoutes both = route_streams(logs, folder, rank, "");
      routes.push_back(std::move(both.out));
      routes.push_back(std::move(both.err));
    }
    Result<LogFiles> all = open_log_files(routes);
    if (all) {
      files = std::move(*all);
    } else if (is_out_of_descriptors(all.error())) {
      opened = descriptor_error(static_cast<size_t>(nproc));  // workers need some too
    } else {
      made = all.error();  // such as a full disk
      folder.skip_attempt(round);
    }
  }
};

RoundFiles::RoundFiles(boost::asio::io_context& loop, IoThread& io, const AgentConfig& config,
                       LogFolder& folder, std::function<void()> on_ready)
    : io_(io),
      config_(config),
      folder_(folder),
      on_ready_(std::move(on_ready)),
      timer_(loop, [this] { on_late(); }),
      poster_(std::make_shared<LoopPoster>(loop)) {}

RoundFiles::~RoundFiles() {
  poster_->close();
  release();
}

void RoundFiles::prepare(int attempt, int64_t round) {
  release();
  round_ = round;
  ++number_;
  if (folder_.run_folder().empty()) {  // --log-dir=/dev/null
    made_ = opened_ = Status();
    return on_ready_();
  }
  if (is_late_) return start_without("its file system does not answer");
  const auto prepared = std::make_shared<Prepared>();
  prepared->folder = folder_;
  const auto done = [this, number = number_, prepared] { on_prepared(number, *prepared); };
  const auto work = [way = poster_, prepared, logs = config_.logs, nproc = config_.workers.nproc,
                     attempt, round, done] {
    prepared->make(logs, nproc, attempt, round);
    LoopPoster::post(way, done);
  };
  if (!io_.post(work)) return start_without("too many file operations wait");
  timer_.set(boot_now() + limits::kRoundFilesTimeout);
}

void RoundFiles::on_prepared(uint64_t number, Prepared& prepared) {
  is_late_ = false;
  if (number != number_) return close(std::move(prepared.files));
  timer_.set(Instant::never());
  folder_ = std::move(prepared.folder);
  made_ = std::move(prepared.made);
  opened_ = std::move(prepared.opened);
  files_ = std::move(prepared.files);
  on_ready_();
}

void RoundFiles::on_late() {
  is_late_ = true;
  ++number_;  // a late answer does not count
  start_without("its file system does not answer");
}

void RoundFiles::start_without(const std::string& why) {
  timer_.set(Instant::never());
  folder_.skip_attempt(round_);
  made_ = Error{ErrorKind::Timeout,
                "cannot make the log folder of this round in " + folder_.run_folder() + ": " + why};
  opened_ = Status();
  on_ready_();
}

void RoundFiles::release() { close(std::exchange(files_, {})); }

void RoundFiles::close(LogFiles files) {
  if (files.empty()) return;
  const auto held = std::make_shared<LogFiles>(std::move(files));
  io_.post([held] { held->clear(); });
}

}  // namespace cpprun

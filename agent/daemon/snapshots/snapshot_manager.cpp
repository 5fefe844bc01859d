#include "agent/daemon/snapshots/snapshot_manager.hpp"

#include <cstdio>
#include <utility>

#include "common/endpoint.hpp"
#include "common/limits/snapshots.hpp"
#include "snapshot_files/folders/catalog.hpp"

namespace cpprun {
namespace {

std::string size_text(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

}  // namespace

SnapshotManager::SnapshotManager(boost::asio::io_context& loop, std::string dir, Events events,
                                 ShardArenas shards, std::shared_ptr<const JobTls> tls)
    : dir_(std::move(dir)),
      shards_(std::move(shards)),
      tls_(std::move(tls)),
      events_(std::move(events)),
      background_(loop),
      scan_timer_(loop, [this] { on_no_answer(); }),
      slow_timer_(loop, [this] { on_slow_fetch(); }) {}

SnapshotManager::~SnapshotManager() { drop_fetch(); }

void SnapshotManager::scan() {
  is_scan_wanted_ = true;
  if (!is_scanning_) scan_now();
}

uint16_t SnapshotManager::serve(const std::string& address) {
  if (server_ && address == served_at_) return server_->port();
  server_.reset();
  Result<std::unique_ptr<SnapshotServer>> made =
      SnapshotServer::start(dir_, address, shards_, tls_);
  if (!made) {
    events_.on_warning(made.error().text);
    return 0;
  }
  server_ = std::move(*made);
  served_at_ = address;
  server_->allow(secret_);
  return server_->port();
}

void SnapshotManager::allow(const std::string& secret) {
  secret_ = secret;
  if (server_) server_->allow(secret);
}

void SnapshotManager::fetch(const control::ResumePoint& resume, const std::string& secret) {
  drop_fetch();
  fetching_ = resume;
  cancel_token_ = std::make_shared<CancelToken>();
  slow_timer_.set(boot_now() + limits::kSnapshotSlow);
  const FetchTask task{.dir = dir_, .resume = resume, .secret = secret, .tls = tls_};
  const auto done = [this, token = cancel_token_](const Fetched& fetched) {
    if (token == cancel_token_) on_fetch_over(fetched);
  };
  const auto on_size = [this, way = background_.poster(), token = cancel_token_](uint64_t bytes) {
    LoopPoster::post(way, [this, token, bytes] {
      if (token == cancel_token_) bytes_total_ = bytes;
    });
  };
  const auto work = [task, on_size, token = cancel_token_] {
    return fetch_snapshot(snapshot_files::real_files(), task, token, on_size);
  };
  background_.run_or(work, done, [](const Status& error) { return Fetched{error, false}; });
}

void SnapshotManager::drop_fetch() {
  if (cancel_token_) cancel_token_->stop();
  cancel_token_.reset();
  slow_timer_.set(Instant::never());
  bytes_total_.reset();
}

void SnapshotManager::scan_now() {
  is_scanning_ = true;
  is_scan_wanted_ = false;
  const int64_t number = ++generation_;
  scan_timer_.set(boot_now() + limits::kSnapshotScanTimeout);
  const auto done = [this, number](const ScanResult& scanned) {
    if (number == generation_) on_scanned(scanned);
  };
  background_.run_or([dir = dir_] { return scan_folder(dir); }, done,
                     [](const Status& error) {
                       return ScanResult{{}, error};
                     });
}

SnapshotManager::ScanResult SnapshotManager::scan_folder(const std::string& dir) {
  auto catalog =
      snapshot_files::scan(snapshot_files::real_files(), dir, limits::kSnapshotsReported);
  if (!catalog) return {{}, catalog.error()};
  ScanResult scanned;
  for (const auto& found : catalog->complete) {
    scanned.snapshots.push_back({found.step, found.manifest.id});
  }
  return scanned;
}

void SnapshotManager::on_scanned(const ScanResult& scanned) {
  scan_timer_.set(Instant::never());
  is_scanning_ = false;
  if (is_scan_wanted_) return scan_now();  // the scan began before the last call of scan()
  if (!scanned.status) events_.on_warning("--snapshot-dir: " + scanned.status.error().text);
  events_.on_snapshots(scanned.snapshots);
}

void SnapshotManager::on_no_answer() {
  ++generation_;  // ignore a late result of that thread
  on_scanned(ScanResult{
      {}, Error{ErrorKind::System, dir_ + " does not answer; the job continues without it"}});
}

void SnapshotManager::on_slow_fetch() {
  const Endpoint from{fetching_.source_address, static_cast<uint16_t>(fetching_.source_port)};
  const std::string size = bytes_total_ ? " (" + size_text(*bytes_total_) + ")" : "";
  events_.on_warning("fetching the snapshot of step " + std::to_string(fetching_.snapshot.step) +
                     size + " from " + to_string(from));
}

void SnapshotManager::on_fetch_over(const Fetched& fetched) {
  drop_fetch();
  if (fetched.status) {
    events_.on_fetched();
  } else {
    events_.on_fetch_failed(fetched.status.error(), fetched.is_damaged);
  }
}

}  // namespace cpprun

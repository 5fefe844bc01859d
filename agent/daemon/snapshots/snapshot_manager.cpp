#include "agent/daemon/snapshots/snapshot_manager.hpp"

#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <optional>
#include <utility>

#include "agent/daemon/loop_poster.hpp"
#include "agent/daemon/snapshots/snapshot_fetch.hpp"
#include "agent/daemon/snapshots/snapshot_server.hpp"
#include "common/endpoint.hpp"
#include "common/limits/snapshots.hpp"
#include "common/loop/timer.hpp"
#include "snapshot_files/folders/catalog.hpp"

namespace cpprun {
namespace {

using control::SnapshotName;

struct ScanResult {
  std::vector<SnapshotName> snapshots;
  Status status;
};

ScanResult scan_folder(const std::string& dir) {
  auto catalog =
      snapshot_files::scan(snapshot_files::real_files(), dir, limits::kSnapshotsReported);
  if (!catalog) return {{}, catalog.error()};
  ScanResult scanned;
  for (const auto& found : catalog->complete) {
    scanned.snapshots.push_back({found.step, found.manifest.id});
  }
  return scanned;
}

std::string size_text(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

}  // namespace

class SnapshotManager::Impl {
 public:
  Impl(boost::asio::io_context& loop, std::string dir, Events events, ShardArenas shards)
      : dir_(std::move(dir)),
        shards_(std::move(shards)),
        events_(std::move(events)),
        poster_(std::make_shared<LoopPoster>(loop)),
        scan_timer_(loop, [this] { on_no_answer(); }),
        slow_timer_(loop, [this] { on_slow_fetch(); }) {}

  ~Impl() {
    poster_->close();
    drop_fetch();
  }

  void scan() {
    is_scan_wanted_ = true;
    if (!is_scanning_) scan_now();
  }

  uint16_t serve(const std::string& address) {
    if (server_ && address == served_at_) return server_->port();
    server_.reset();
    Result<std::unique_ptr<SnapshotServer>> made = SnapshotServer::start(dir_, address, shards_);
    if (!made) {
      events_.on_warning(made.error().text);
      return 0;
    }
    server_ = std::move(*made);
    served_at_ = address;
    server_->allow(secret_);
    return server_->port();
  }

  void allow(const std::string& secret) {
    secret_ = secret;
    if (server_) server_->allow(secret);
  }

  void fetch(const control::ResumePoint& resume, const std::string& secret) {
    drop_fetch();
    fetching_ = resume;
    cancel_token_ = std::make_shared<CancelToken>();
    slow_timer_.set(boot_now() + limits::kSnapshotSlow);
    const FetchTask task{dir_, resume, secret};
    const Status ok =
        start_detached_thread([this, task, way = poster_, cancel_token = cancel_token_] {
          const auto on_size = [&](uint64_t bytes) {
            LoopPoster::post(way, [this, cancel_token, bytes] {
              if (cancel_token == cancel_token_) bytes_total_ = bytes;
            });
          };
          const Fetched fetched =
              fetch_snapshot(snapshot_files::real_files(), task, cancel_token, on_size);
          LoopPoster::post(way, [this, cancel_token, fetched] {
            if (cancel_token == cancel_token_) on_fetch_over(fetched);
          });
        });
    if (ok) return;
    LoopPoster::post(poster_, [this, cancel_token = cancel_token_, ok] {
      if (cancel_token == cancel_token_) on_fetch_over(Fetched{ok, false});
    });
  }

  void drop_fetch() {
    if (cancel_token_) cancel_token_->stop();
    cancel_token_.reset();
    slow_timer_.set(Instant::never());
    bytes_total_.reset();
  }

 private:
  void scan_now() {
    is_scanning_ = true;
    is_scan_wanted_ = false;
    const int64_t number = ++generation_;
    scan_timer_.set(boot_now() + limits::kSnapshotScanTimeout);
    const Status ok = start_detached_thread([this, number, dir = dir_, way = poster_] {
      const ScanResult scanned = scan_folder(dir);
      LoopPoster::post(way, [this, number, scanned] {
        if (number == generation_) on_scanned(scanned);
      });
    });
    if (ok) return;
    LoopPoster::post(poster_, [this, number, ok] {
      if (number == generation_) on_scanned(ScanResult{{}, ok});
    });
  }

  void on_scanned(const ScanResult& scanned) {
    scan_timer_.set(Instant::never());
    is_scanning_ = false;
    if (is_scan_wanted_) return scan_now();  // the scan began before the last call of scan()
    if (!scanned.status) events_.on_warning("--snapshot-dir: " + scanned.status.error().text);
    events_.on_snapshots(scanned.snapshots);
  }

  void on_no_answer() {
    ++generation_;  // ignore a late result of that thread
    on_scanned(
        ScanResult{{}, Error{ErrorKind::System, dir_ + " does not answer; going on without it"}});
  }

  void on_slow_fetch() {
    const Endpoint from{fetching_.source_address, static_cast<uint16_t>(fetching_.source_port)};
    const std::string size = bytes_total_ ? " (" + size_text(*bytes_total_) + ")" : "";
    events_.on_warning("fetching the snapshot of step " + std::to_string(fetching_.snapshot.step) +
                       size + " from " + to_string(from));
  }

  void on_fetch_over(const Fetched& fetched) {
    drop_fetch();
    if (fetched.status) {
      events_.on_fetched();
    } else {
      events_.on_fetch_failed(fetched.status.error(), fetched.is_damaged);
    }
  }

  const std::string dir_;
  const ShardArenas shards_;
  Events events_;
  const std::shared_ptr<LoopPoster> poster_;  // shared with threads, which may outlive us
  Timer scan_timer_;
  Timer slow_timer_;
  bool is_scanning_ = false;
  bool is_scan_wanted_ = false;  // scan again after the running scan
  int64_t generation_ = 0;
  std::unique_ptr<SnapshotServer> server_;
  std::string served_at_;
  std::string secret_;
  control::ResumePoint fetching_;
  std::shared_ptr<CancelToken> cancel_token_;  // of the running fetch, shared with its thread
  std::optional<uint64_t> bytes_total_;
};

SnapshotManager::SnapshotManager(boost::asio::io_context& loop, std::string dir, Events events,
                                 ShardArenas shards)
    : impl_(std::make_unique<Impl>(loop, std::move(dir), std::move(events), std::move(shards))) {}
SnapshotManager::~SnapshotManager() = default;
void SnapshotManager::scan() { impl_->scan(); }
uint16_t SnapshotManager::serve(const std::string& address) { return impl_->serve(address); }
void SnapshotManager::allow(const std::string& secret) { impl_->allow(secret); }
void SnapshotManager::fetch(const control::ResumePoint& resume, const std::string& secret) {
  impl_->fetch(resume, secret);
}
void SnapshotManager::drop_fetch() { impl_->drop_fetch(); }

}  // namespace cpprun

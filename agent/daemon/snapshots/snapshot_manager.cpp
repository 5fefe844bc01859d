#include "agent/daemon/snapshots/snapshot_manager.hpp"

#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <optional>
#include <utility>

#include "agent/daemon/loop_poster.hpp"
#include "agent/daemon/snapshots/snapshot_fetch.hpp"
#include "agent/daemon/snapshots/snapshot_server.hpp"
#include "agent/process/timer.hpp"
#include "common/endpoint.hpp"
#include "common/limits/fetch.hpp"
#include "common/limits/snapshots.hpp"
#include "snapshot_files/folders/catalog.hpp"

namespace cpprun {
namespace {

using control::SnapshotName;

struct ScanResult {
  std::vector<SnapshotName> snapshots;
  Status status;
};

ScanResult look_into(const std::string& dir) {
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
        look_timer_(loop, [this] { on_no_answer(); }),
        slow_timer_(loop, [this] { on_slow_fetch(); }) {}

  ~Impl() {
    poster_->close();
    drop_fetch();
  }

  void look() {
    is_wanted_ = true;
    if (!is_looking_) look_now();
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
              if (cancel_token == cancel_token_) to_come_ = bytes;
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
    to_come_.reset();
  }

 private:
  void look_now() {
    is_looking_ = true;
    is_wanted_ = false;
    const int64_t number = ++looks_;
    look_timer_.set(boot_now() + limits::kSnapshotScanTimeout);
    const Status ok = start_detached_thread([this, number, dir = dir_, way = poster_] {
      const ScanResult scanned = look_into(dir);
      LoopPoster::post(way, [this, number, scanned] {
        if (number == looks_) on_seen(scanned);
      });
    });
    if (ok) return;
    LoopPoster::post(poster_, [this, number, ok] {
      if (number == looks_) on_seen(ScanResult{{}, ok});
    });
  }

  void on_seen(const ScanResult& scanned) {
    look_timer_.set(Instant::never());
    is_looking_ = false;
    if (is_wanted_) return look_now();  // the scan began before the last look()
    if (!scanned.status) events_.on_warning("--snapshot-dir: " + scanned.status.error().text);
    events_.on_snapshots(scanned.snapshots);
  }

  void on_no_answer() {
    ++looks_;  // ignore a late result of that thread
    on_seen(
        ScanResult{{}, Error{ErrorKind::System, dir_ + " does not answer; going on without it"}});
  }

  void on_slow_fetch() {
    const Endpoint from{fetching_.source_address, static_cast<uint16_t>(fetching_.source_port)};
    const std::string size = to_come_ ? " (" + size_text(*to_come_) + ")" : "";
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
  Timer look_timer_;
  Timer slow_timer_;
  bool is_looking_ = false;
  bool is_wanted_ = false;  // scan again after the running scan
  int64_t looks_ = 0;
  std::unique_ptr<SnapshotServer> server_;
  std::string served_at_;
  std::string secret_;
  control::ResumePoint fetching_;
  std::shared_ptr<CancelToken> cancel_token_;  // of the running fetch, shared with its thread
  std::optional<uint64_t> to_come_;
};

SnapshotManager::SnapshotManager(boost::asio::io_context& loop, std::string dir, Events events,
                                 ShardArenas shards)
    : impl_(std::make_unique<Impl>(loop, std::move(dir), std::move(events), std::move(shards))) {}
SnapshotManager::~SnapshotManager() = default;
void SnapshotManager::look() {
  impl_->look();
}
uint16_t SnapshotManager::serve(const std::string& address) {
  return impl_->serve(address);
}
void SnapshotManager::allow(const std::string& secret) {
  impl_->allow(secret);
}
void SnapshotManager::fetch(const control::ResumePoint& resume, const std::string& secret) {
  impl_->fetch(resume, secret);
}
void SnapshotManager::drop_fetch() {
  impl_->drop_fetch();
}

}  // namespace cpprun

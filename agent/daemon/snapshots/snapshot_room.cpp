#include "agent/daemon/snapshots/snapshot_room.hpp"

#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <optional>
#include <utility>

#include "agent/daemon/snapshots/snapshot_fetch.hpp"
#include "agent/daemon/snapshots/snapshot_server.hpp"
#include "agent/daemon/way_back.hpp"
#include "agent/process/timer.hpp"
#include "common/endpoint.hpp"
#include "common/limits/fetch.hpp"
#include "common/limits/snapshots.hpp"
#include "snapshot_files/folders/catalog.hpp"

namespace cpprun {
namespace {

using control::SnapshotName;

struct Seen {
  std::vector<SnapshotName> snapshots;
  Status status;
};

Seen look_into(const std::string& dir) {
  auto catalog = snapshot_files::scan(snapshot_files::real_files(), dir, limits::kSnapshotsTold);
  if (!catalog) return {{}, catalog.error()};
  Seen seen;
  for (const auto& found : catalog->complete) {
    seen.snapshots.push_back({found.step, found.manifest.id});
  }
  return seen;
}

std::string size_text(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

}  // namespace

class SnapshotRoom::Impl {
 public:
  Impl(boost::asio::io_context& loop, std::string dir, Events events, ShareShelves shares)
      : dir_(std::move(dir)),
        shares_(std::move(shares)),
        events_(std::move(events)),
        way_(std::make_shared<WayBack>(loop)),
        look_timer_(loop, [this] { on_no_answer(); }),
        slow_timer_(loop, [this] { on_slow_fetch(); }) {}

  ~Impl() {
    way_->close();
    drop_fetch();
  }

  void look() {
    is_wanted_ = true;
    if (!is_looking_) look_now();
  }

  uint16_t serve(const std::string& address) {
    if (server_ && address == served_at_) return server_->port();
    server_.reset();
    Result<std::unique_ptr<SnapshotServer>> made = SnapshotServer::start(dir_, address, shares_);
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

  void fetch(const control::Resume& resume, const std::string& secret) {
    drop_fetch();
    fetching_ = resume;
    stopper_ = std::make_shared<Stopper>();
    slow_timer_.set(boot_now() + limits::kSnapshotSlow);
    const FetchTask task{dir_, resume, secret};
    const Status ok = start_quiet_thread([this, task, way = way_, stopper = stopper_] {
      const auto on_size = [&](uint64_t bytes) {
        WayBack::post(way, [this, stopper, bytes] {
          if (stopper == stopper_) to_come_ = bytes;
        });
      };
      const Fetched fetched = fetch_snapshot(snapshot_files::real_files(), task, stopper, on_size);
      WayBack::post(way, [this, stopper, fetched] {
        if (stopper == stopper_) on_fetch_over(fetched);
      });
    });
    if (ok) return;
    WayBack::post(way_, [this, stopper = stopper_, ok] {
      if (stopper == stopper_) on_fetch_over(Fetched{ok, false});
    });
  }

  void drop_fetch() {
    if (stopper_) stopper_->stop();
    stopper_.reset();
    slow_timer_.set(Instant::never());
    to_come_.reset();
  }

 private:
  void look_now() {
    is_looking_ = true;
    is_wanted_ = false;
    const int64_t number = ++looks_;
    look_timer_.set(boot_now() + limits::kSnapshotScanTakes);
    const Status ok = start_quiet_thread([this, number, dir = dir_, way = way_] {
      const Seen seen = look_into(dir);
      WayBack::post(way, [this, number, seen] {
        if (number == looks_) on_seen(seen);
      });
    });
    if (ok) return;
    WayBack::post(way_, [this, number, ok] {
      if (number == looks_) on_seen(Seen{{}, ok});
    });
  }

  void on_seen(const Seen& seen) {
    look_timer_.set(Instant::never());
    is_looking_ = false;
    if (is_wanted_) return look_now();  // what was seen may be older than the wish
    if (!seen.status) events_.on_warning("--snapshot-dir: " + seen.status.error().text);
    events_.on_snapshots(seen.snapshots);
  }

  void on_no_answer() {
    ++looks_;  // that thread's answer, should it come, counts no more
    on_seen(Seen{{}, Error{ErrorKind::System, dir_ + " does not answer; going on without it"}});
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
  const ShareShelves shares_;
  Events events_;
  const std::shared_ptr<WayBack> way_;  // shared with threads, which may outlive us
  Timer look_timer_;
  Timer slow_timer_;
  bool is_looking_ = false;
  bool is_wanted_ = false;  // again, as soon as this look is over
  int64_t looks_ = 0;
  std::unique_ptr<SnapshotServer> server_;
  std::string served_at_;
  std::string secret_;
  control::Resume fetching_;
  std::shared_ptr<Stopper> stopper_;  // of the running fetch, shared with its thread
  std::optional<uint64_t> to_come_;
};

SnapshotRoom::SnapshotRoom(boost::asio::io_context& loop, std::string dir, Events events,
                           ShareShelves shares)
    : impl_(std::make_unique<Impl>(loop, std::move(dir), std::move(events), std::move(shares))) {}
SnapshotRoom::~SnapshotRoom() = default;
void SnapshotRoom::look() {
  impl_->look();
}
uint16_t SnapshotRoom::serve(const std::string& address) {
  return impl_->serve(address);
}
void SnapshotRoom::allow(const std::string& secret) {
  impl_->allow(secret);
}
void SnapshotRoom::fetch(const control::Resume& resume, const std::string& secret) {
  impl_->fetch(resume, secret);
}
void SnapshotRoom::drop_fetch() {
  impl_->drop_fetch();
}

}  // namespace cpprun

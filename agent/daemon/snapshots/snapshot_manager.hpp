// SnapshotManager: manages the agent's --snapshot-dir: scans it, serves its snapshots to other
// nodes and fetches snapshots from them. Disk and network I/O runs on threads of its own; callbacks
// run on the loop.
//
// Thread: the loop's. Owner: the daemon. Calls no callback but on_warning from inside a member
// function, and none after its destruction.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/daemon/snapshots/snapshot_fetch.hpp"
#include "agent/daemon/snapshots/snapshot_server.hpp"
#include "common/loop/background_work.hpp"
#include "common/loop/timer.hpp"

namespace cpprun {

class SnapshotManager {
 public:
  struct Events {
    std::function<void(std::vector<control::SnapshotName>)> on_snapshots;
    std::function<void()> on_fetched;
    std::function<void(const Error&, bool is_damaged)> on_fetch_failed;
    std::function<void(const std::string&)> on_warning;
  };

  // `shards`: shards in memory that other nodes may fetch too; empty: none. `tls`: of all
  // transfers; null: they are plain.
  SnapshotManager(boost::asio::io_context& loop, std::string dir, Events events,
                  ShardArenas shards = {}, std::shared_ptr<const JobTls> tls = nullptr);
  ~SnapshotManager();
  SnapshotManager(const SnapshotManager&) = delete;

  // Scans the folder and calls on_snapshots with a result that is not older than this call. Calls
  // during a scan share one result. A folder that does not answer in time counts as empty.
  void scan();

  // Opens the port at which other nodes fetch, on `address` ("": every interface), unless it is
  // open there; returns it, 0 on failure.
  uint16_t serve(const std::string& address);
  void allow(const std::string& secret);

  void fetch(const control::ResumePoint& resume, const std::string& secret);
  void drop_fetch();

 private:
  struct ScanResult {
    std::vector<control::SnapshotName> snapshots;
    Status status;
  };
  static ScanResult scan_folder(const std::string& dir);
  void scan_now();
  void on_scanned(const ScanResult& scanned);
  void on_no_answer();
  void on_slow_fetch();
  void on_fetch_over(const Fetched& fetched);

  const std::string dir_;
  const ShardArenas shards_;
  const std::shared_ptr<const JobTls> tls_;
  const Events events_;
  BackgroundWork background_;
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

}  // namespace cpprun

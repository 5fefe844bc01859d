// SnapshotManager: manages the agent's --snapshot-dir: scans it, serves its snapshots to other
// nodes and fetches snapshots from them. Disk and network I/O runs on threads of its own; callbacks
// run on the loop.
//
// Thread: the loop's. Owner: the daemon. Calls no callback but on_warning from inside a member
// function, and none after its destruction.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/daemon/snapshots/shards.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

class SnapshotManager {
 public:
  struct Events {
    std::function<void(std::vector<control::SnapshotName>)> on_snapshots;
    std::function<void()> on_fetched;
    std::function<void(const Error&, bool is_damaged)> on_fetch_failed;
    std::function<void(const std::string&)> on_warning;
  };

  // `shards`: shards in memory that other nodes may fetch too; empty: none.
  SnapshotManager(boost::asio::io_context& loop, std::string dir, Events events,
                  ShardArenas shards = {});
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
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun

// SnapshotManager: what an agent does with its --snapshot-dir: looks what lies there, lets other
// nodes fetch from it, and fetches from them. Disks and peers are waited for on threads of their
// own; everything comes back on the loop.
//
// Thread: the loop's. Owner: the daemon. Callbacks are never called from inside a member function
// (but on_warning), and never after the end of this object.
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
    std::function<void(const std::string&)> on_warning;  // worth a line for people
  };

  // `shards`: what of the memory others may fetch too; empty: nothing.
  SnapshotManager(boost::asio::io_context& loop, std::string dir, Events events,
                  ShardArenas shards = {});
  ~SnapshotManager();
  SnapshotManager(const SnapshotManager&) = delete;

  // Answered by on_snapshots: what lies there at some moment from now on. Several at once get one
  // answer. A folder that does not answer in time holds nothing.
  void look();

  // Where other nodes can fetch from: a port of `address` ("": every interface); 0 if there is
  // none. Opened once, and again when the address is another.
  uint16_t serve(const std::string& address);
  void allow(const std::string& secret);

  void fetch(const control::ResumePoint& resume, const std::string& secret);
  void drop_fetch();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun

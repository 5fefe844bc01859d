// SnapshotServer: lets other agents fetch complete snapshots from --snapshot-dir. Read-only; who
// does not show the round's secret gets nothing, and nobody gets a file that no manifest names.
// With
// --snapshot-replicas also the shards that lie in memory.
//
// A thread accepts, and one serves each peer: reading a disk may take its time. The threads end
// soon after this object, which does not wait for them: a disk that does not answer holds up
// nobody.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/daemon/snapshots/shards.hpp"
#include "common/result.hpp"

namespace cpprun {

class SnapshotServer {
 public:
  // Listens on a free port of `address`; "" is every interface.
  static Result<std::unique_ptr<SnapshotServer>> start(const std::string& dir,
                                                       const std::string& address,
                                                       ShardArenas shards = {});
  ~SnapshotServer();
  SnapshotServer(const SnapshotServer&) = delete;

  uint16_t port() const;
  // From now on this secret counts, and no other; "": nobody may fetch.
  void allow(const std::string& secret);

 private:
  class Impl;
  explicit SnapshotServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // shared with its threads
};

}  // namespace cpprun

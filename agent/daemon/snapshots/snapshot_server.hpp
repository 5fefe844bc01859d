// SnapshotServer: serves complete snapshots from --snapshot-dir to other agents, and with
// --snapshot-replicas the shards in memory. Read-only. A peer must send the round's secret, and
// gets only the manifest and the files that it names.
//
// Threads: those of a PeerListener.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/daemon/snapshots/peer_listener.hpp"
#include "agent/daemon/snapshots/shards.hpp"
#include "common/result.hpp"

namespace cpprun {

class JobTls;

class SnapshotServer {
 public:
  // Listens on a free port of `address`; "" is every interface. `tls`: peers must use it; null:
  // connections are plain.
  static Result<std::unique_ptr<SnapshotServer>> start(const std::string& dir,
                                                       const std::string& address,
                                                       ShardArenas shards = {},
                                                       std::shared_ptr<const JobTls> tls = nullptr);
  ~SnapshotServer();
  SnapshotServer(const SnapshotServer&) = delete;

  uint16_t port() const;
  // Sets the secret that peers must send; "" refuses all peers.
  void allow(const std::string& secret);

 private:
  class Impl;
  SnapshotServer(std::shared_ptr<Impl> impl, std::unique_ptr<PeerListener> listener);
  std::shared_ptr<Impl> impl_;  // shared with the listener's threads
  std::unique_ptr<PeerListener> listener_;
};

}  // namespace cpprun

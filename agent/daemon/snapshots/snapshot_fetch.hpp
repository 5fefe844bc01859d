// Copies a snapshot from another agent's --snapshot-dir into ours: writes it to a draft, checks it
// and publishes it like any other snapshot (snapshot_files/folders/commit.hpp). The peer is
// untrusted. Blocking; not for the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/daemon/snapshots/peer_socket.hpp"
#include "common/limits/snapshots.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "snapshot_files/folders/file_layer.hpp"

namespace cpprun {

struct FetchTask {
  std::string dir;
  control::ResumePoint resume;
  std::string secret;
  Duration stalls = limits::kSnapshotStallTimeout;
  Duration queue = limits::kSnapshotQueueTimeout;
  std::shared_ptr<const JobTls> tls{};  // null: plain connections
};

struct Fetched {
  Status status;
  bool is_damaged = false;  // the files do not match the manifest
};

// Each wait is bounded by the limits in `task`. Calls `on_size` once with the number of bytes to
// fetch.
Fetched fetch_snapshot(snapshot_files::FileLayer& files, const FetchTask& task,
                       const std::shared_ptr<const CancelToken>& cancel_token,
                       const std::function<void(uint64_t)>& on_size);

}  // namespace cpprun

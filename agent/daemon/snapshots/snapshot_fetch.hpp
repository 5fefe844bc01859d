// Brings a snapshot from another agent's --snapshot-dir into ours: into a draft, checked, then
// published as any other snapshot (snapshot_files/folders/commit.hpp). What the other sends may be
// anything.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/daemon/snapshots/peer_socket.hpp"
#include "common/limits/fetch.hpp"
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
};

struct Fetched {
  Status status;
  bool is_damaged = false;  // what came is not what its manifest says
};

// Takes as long as it takes, but waits for nothing longer than the task says. `on_size` is told
// once how many bytes are to come.
Fetched fetch_snapshot(snapshot_files::FileLayer& files, const FetchTask& task,
                       const std::shared_ptr<const CancelToken>& cancel_token,
                       const std::function<void(uint64_t)>& on_size);

}  // namespace cpprun

// Node: what a coordinator knows of one agent of its job.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/limits/dashboard.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/snapshot_choice.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// What the server knows of a connection that no message says.
struct SessionAddresses {
  std::string peer_address;   // numeric
  std::string local_address;  // numeric: where the agent reached us
};

struct Node {
  // Present: in touch or only silent. Dead: evidence by R4; its workers are gone `kDeathGrace`
  // later. A node that left, was lost (R5) or whose grace is over is forgotten.
  enum class Liveness { Present, Dead };
  // Where its workers stand, as far as it told us. Idle: no part in the current round.
  enum class WorkerPhase { Idle, Starting, Running, Stopped, Done };

  NodeId id;
  std::string key;  // as it said hello with; told to nobody (R10)
  control::Register facts;
  SessionAddresses session_addresses;
  std::optional<SessionId> session;
  int64_t connection = 0;
  Liveness liveness = Liveness::Present;
  WorkerPhase worker_phase = WorkerPhase::Idle;
  bool is_embedded = false;  // lives in the coordinator's own process: no lease, no worker lease
  std::optional<int64_t> group_rank;  // in the newest round that it took part in
  int64_t arrival = 0;                // order of first registration
  Instant came_at;                    // its first registration
  Instant heard_at;                   // receipt of its last message
  std::optional<int64_t> unanswered;  // the newest ping that has had to wait for its pong
  Instant dead_at;                    // Liveness::Dead only
  // The newest that it told for the dashboard; by local rank what somebody wanted to read.
  std::optional<control::Progress> progress{};
  std::map<int64_t, control::LogLines> lines{};

  bool is_connected() const { return liveness == Liveness::Present && session.has_value(); }
  bool has_workers() const {
    return worker_phase == WorkerPhase::Starting || worker_phase == WorkerPhase::Running;
  }
  // Asked to stop: it leaves as soon as its workers have gone.
  bool is_draining() const { return facts.is_draining; }
  void take(const std::vector<control::SnapshotName>& snapshots) {
    facts.snapshots.clear();
    if (are_sane(snapshots)) facts.snapshots = snapshots;
  }
  void take(const control::Progress& told) {
    const size_t longest = std::max(told.steps.size(), told.step_us.size());
    if (longest <= limits::kProgressWorkers) progress = told;
  }
  void take(const control::LogLines& told) {
    const auto is_long = [](const std::string& line) {
      return line.size() > limits::kLineBytesReported;
    };
    const bool is_sound = told.local_rank >= 0 && told.local_rank < facts.nproc &&
                          std::max(told.out.size(), told.err.size()) <= limits::kTailLines &&
                          std::ranges::none_of(told.out, is_long) &&
                          std::ranges::none_of(told.err, is_long);
    if (!is_sound) return;
    // No more are ever asked for at once: the others are of ranks that nobody reads any more.
    if (lines.size() >= limits::kStreams && !lines.contains(told.local_rank)) lines.clear();
    lines[told.local_rank] = told;
  }
  const control::LogLines* lines_of(int64_t local_rank) const {
    const auto found = lines.find(local_rank);
    return found == lines.end() ? nullptr : &found->second;
  }
  // May take part in the next round.
  bool is_ready() const {
    return is_connected() && !is_draining() &&
           (worker_phase == WorkerPhase::Idle || worker_phase == WorkerPhase::Stopped);
  }
};

}  // namespace cpprun

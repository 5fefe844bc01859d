// Node: what a coordinator knows of one agent of its job.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/goodput/goodput.hpp"
#include "common/ids.hpp"
#include "common/limits/dashboard.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/snapshot_choice.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// Addresses of a connection; the server knows them, no message has them.
struct SessionAddresses {
  std::string peer_address;   // numeric
  std::string local_address;  // numeric: where the agent reached us
};

struct Node {
  // Present: connected, or silent. Dead: there is evidence of its death (R4), and its workers are
  // gone `kDeathGrace` later. A node that has left, that is lost (R5) or whose grace is over is
  // forgotten.
  enum class Liveness { Present, Dead };
  // The state of its workers, as far as the agent has reported it. Idle: not in the newest round.
  enum class WorkerPhase { Idle, Starting, Running, Stopped, Done };

  NodeId id;
  std::string key;  // from its hello; never sent to anyone (R10)
  control::Register facts;
  SessionAddresses session_addresses;
  std::optional<SessionId> session;
  int64_t connection = 0;
  Liveness liveness = Liveness::Present;
  WorkerPhase worker_phase = WorkerPhase::Idle;
  bool is_embedded = false;  // in the coordinator's process: no node lease, no worker lease
  std::optional<int64_t> group_rank;  // in its newest round
  int64_t arrival = 0;                // order of first registration
  Instant came_at;                    // its first registration
  Instant heard_at;                   // receipt of its last message
  std::optional<int64_t> unanswered;  // the newest ping that still waits for its pong
  Instant dead_at;                    // Liveness::Dead only
  WorkerStarts starts{};              // the newest report
  bool is_excluded = false;           // its host is
  std::string link_failure{};         // why it failed --link-check; empty: it did not
  // The newest log lines for the dashboard, by local rank.
  std::map<int64_t, control::LogLines> lines{};
  std::vector<Duration> time_spent{};    // by GoodputPhase, as this node sees it; empty: no report
  int64_t submissions = 1;               // of the job, of which that is
  control::WorkerProcesses processes{};  // the newest report
  int64_t last_step = -1;                // of its newest round that is over; -1: unknown

  bool is_connected() const { return liveness == Liveness::Present && session.has_value(); }
  bool has_workers() const {
    return worker_phase == WorkerPhase::Starting || worker_phase == WorkerPhase::Running;
  }
  // The agent was asked to stop: it leaves as soon as its workers are gone.
  bool is_draining() const { return facts.is_draining; }
  // An insane list counts as empty: it would reach other nodes.
  void take(const std::vector<control::SnapshotName>& snapshots) {
    facts.snapshots.clear();
    if (are_sane(snapshots)) facts.snapshots = snapshots;
  }
  // A report out of range is ignored.
  void take(const control::LogLines& report) {
    const auto is_long = [](const std::string& line) {
      return line.size() > limits::kLineBytesReported;
    };
    const bool is_sound = report.local_rank >= 0 && report.local_rank < facts.nproc &&
                          std::max(report.out.size(), report.err.size()) <= limits::kTailLines &&
                          std::ranges::none_of(report.out, is_long) &&
                          std::ranges::none_of(report.err, is_long);
    if (!is_sound) return;
    // The coordinator asks for no more streams at once: the others are no longer read.
    if (lines.size() >= limits::kStreams && !lines.contains(report.local_rank)) lines.clear();
    lines[report.local_rank] = report;
  }
  // A report out of range is ignored.
  void take(const control::TimeSpent& report) {
    const auto is_sane = [](Duration spent) {
      // The sum of all phases fits into a Duration.
      constexpr Duration kMost = Duration::max() / static_cast<int64_t>(kGoodputPhases);
      return spent >= Duration{} && spent <= kMost;
    };
    if (report.spent.size() != kGoodputPhases || !std::ranges::all_of(report.spent, is_sane))
      return;
    time_spent = report.spent;
    submissions = std::max<int64_t>(1, report.submissions);
  }
  // A report out of range is ignored.
  void take(const control::WorkerProcesses& report) {
    const size_t most =
        std::min(limits::kProgressWorkers, static_cast<size_t>(std::max<int64_t>(0, facts.nproc)));
    if (std::max(report.pids.size(), report.memory_mib.size()) > most) return;
    if (report.log_dir.size() <= limits::kLogPathBytes) processes = report;
  }
  // Keeps a report about this node alone on which no decision depends. False: the message is none.
  bool take_report(const control::AgentMessage& message) {
    if (const auto* tail = std::get_if<control::LogLines>(&message)) {
      take(*tail);
    } else if (const auto* spent = std::get_if<control::TimeSpent>(&message)) {
      take(*spent);
    } else if (const auto* workers = std::get_if<control::WorkerProcesses>(&message)) {
      take(*workers);
    } else {
      return false;
    }
    return true;
  }
  const control::LogLines* lines_of(int64_t local_rank) const {
    const auto found = lines.find(local_rank);
    return found == lines.end() ? nullptr : &found->second;
  }
  bool has_failed_check() const { return facts.node_check.state == control::CheckState::Failed; }
  // It is connected, and its agent was not asked to leave.
  bool can_stay() const { return is_connected() && !is_draining(); }
  // It has no part in a round that is not over.
  bool is_free() const {
    return can_stay() &&
           (worker_phase == WorkerPhase::Idle || worker_phase == WorkerPhase::Stopped);
  }
  // The node may take part in the next round.
  bool is_ready() const {
    return is_free() && !is_excluded && link_failure.empty() &&
           facts.node_check.state == control::CheckState::Passed;
  }
};

}  // namespace cpprun

// Effects of the agent's state machine. Plain data; the daemon and the simulator carry them out.
//
// The runner carries effects out front to back. It answers `ReservePort` by Agent::on_port() before
// any other event, and `PrepareRound`, `StartWorkers`, `ScanSnapshots`, `FetchSnapshot`,
// `FetchReplicas` and `RunNodeCheck` whenever they are done.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/endpoint.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

// A message to the coordinator. Without a connection the runner drops it; the agent repeats what
// matters when it registers again.
struct SendMessage {
  control::AgentMessage message;
};

// Close the connection after the messages before it. FIN announces a planned end; in every other
// case the runner resets the connection, and the coordinator keeps the node's lease (R4).
struct Disconnect {
  bool is_reset = false;
};

// The connection is silent, or leads to the wrong coordinator: reset it and connect again.
struct Reconnect {
  bool is_elsewhere = false;  // try another address first
};

// Further addresses of the coordinator, the likeliest first. `is_sure`: the coordinator is at the
// first one.
struct Routes {
  std::vector<Endpoint> places;
  bool is_sure = false;
};

// Start a coordinator in this process, at this node's control port, lead the job from there (R16),
// and connect to it.
struct BecomeCoordinator {
  Term term;
  control::Standby place;
  std::string job_key{};  // as in the rank assignment
};

// Make the round's log folder and open its log files. Answered by Agent::on_prepared(), also after
// a failure. Replaces an earlier one, whose answer does not come any more.
struct PrepareRound {
  int64_t attempt = 0;  // the number in the names of its folder
  RoundNumber round;
};

// Comes after PrepareRound for the same round. Answered by Agent::on_started() or
// on_start_failed(); after StopWorkers by on_all_workers_gone() alone. Workers that
// on_workers_released() reported get the new assignment; only the missing ones are started.
struct StartWorkers {
  control::RankAssignment assignment;
};

inline constexpr int kSigTerm = 15;  // cores include no header of the operating system

// Send `signal` and SIGCONT to all workers, and SIGKILL after `grace`.
struct StopWorkers {
  int signal = 0;
  Duration grace{};
  // Workers that save on request get the request through their page instead of the signal.
  bool lets_save = false;
  // The second request: processes that survive SIGKILL count as stuck sooner.
  bool is_urgent = false;
  // Workers that can regroup (worker_channel.hpp) are asked to do so instead of getting the signal.
  // If one does, Agent::on_workers_released() answers, else on_all_workers_gone().
  bool keeps_survivors = false;
  std::optional<LocalRank> hung{};  // this worker gets the signal in any case
};

// Send the signal to the workers that are saving: their snapshot can no longer become complete.
struct EndSaving {
  int signal = 0;
};

// Reserve MASTER_PORT for worker 0 of the next round.
struct ReservePort {};

// Scan --snapshot-dir; answered by Agent::on_snapshots().
struct ScanSnapshots {};

// Fetch this snapshot into --snapshot-dir; answered by Agent::on_fetched() or on_fetch_failed().
struct FetchSnapshot {
  control::ResumePoint resume;
  std::string secret;
};

// Fetch the shards in memory that this node lacks from the neighbour that may hold replicas of
// them. Answered by Agent::on_replicas_fetched(), also after a failure.
struct FetchReplicas {
  control::PeerAddress at;
  control::RankAssignment assignment;
};

// Keep replicas of that node's shards from now on; unset: of no node. Older replicas stay until
// newer ones replace them.
struct KeepReplicas {
  std::optional<control::PeerAddress> of;
  std::string secret;
};

// Run --node-check; answered by Agent::on_node_checked().
struct RunNodeCheck {};

// Cancel FetchSnapshot and FetchReplicas; no answer comes.
struct DropFetch {};

// Serve this node's snapshots to nodes that know this secret; empty: to none. Replaces the previous
// secret.
struct ServeSnapshots {
  std::string secret;
};

// The reaper process kills the workers at `deadline` unless the agent moves it (R6).
struct SetWorkerLease {
  Instant deadline;
};

// The first failure of the round on this node, for the console.
struct FirstFailure {
  WorkerExit end;
  control::RankAssignment assignment;
  bool regroups = false;  // the other workers are asked to
};

// Status: the state of the job, for its user; no cause for alarm.
struct LogEvent {
  enum class Level { Debug, Info, Status, Warning } level = Level::Info;
  std::string text;
};

// The run is over. The last effect.
struct Finish {
  enum class How {
    Success,
    Failure,  // the coordinator's result: workers failed, or a node could not start them
    Error,    // refused, timed out or cut off; `text` holds the reason
    Signal,   // a signal to the agent; `text`: what the agent waited for
    // On request, and the same command continues without loss. `text`: the other nodes that stop,
    // if the coordinator sent a result; else what the agent waited for.
    Stopped,
    Unusable  // SIGKILL did not end a process; `text` names it
  };
  How how = How::Success;
  int signal = 0;                // that ended the agent; 0: none
  std::string text;              // the failure summary, or the error
  std::vector<WorkerExit> ends;  // of the last round with a failure on this node
  int64_t restarts_used = 0;
  int64_t admin_restarts = 0;
  std::optional<control::SnapshotName> snapshot{};  // the newest on this node
  bool has_saved = false;  // Stopped by a signal: workers of this node saved because of it
  // with a signal: other nodes may need this process's coordinator until then
  Instant stays_until{};
  // the node whose loss ended the last round, and how; empty: the round ended for another reason
  std::string lost{};
  std::optional<control::JobResult> job_result{};  // unset: the coordinator sent none
  bool ran_no_worker = false;                      // this node was in no round

  // Nothing failed: the logs of a temporary folder may go.
  bool is_well() const { return how == How::Success || how == How::Stopped; }

  static Finish error(std::string text) { return {How::Error, 0, std::move(text), {}, 0}; }
};

using Effect =
    std::variant<SendMessage, Disconnect, Reconnect, PrepareRound, StartWorkers, StopWorkers,
                 ReservePort, SetWorkerLease, FirstFailure, LogEvent, Finish, ScanSnapshots,
                 FetchSnapshot, DropFetch, ServeSnapshots, EndSaving, FetchReplicas, KeepReplicas,
                 Routes, BecomeCoordinator, RunNodeCheck>;
using Effects = std::vector<Effect>;

}  // namespace cpprun::agent

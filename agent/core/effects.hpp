// What the agent's core wishes to happen. Plain data; the daemon carries it out, the simulator too.
//
// Ordering contract: carried out front to back. `ReservePort` is answered by Agent::on_port()
// before anything else happens; `ScanSnapshots`, `FetchSnapshot` and `FetchReplicas` are answered
// in their own time.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/endpoint.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

// A message for the coordinator; dropped while there is no connection (what matters is said again
// on registering).
struct SendMessage {
  control::AgentMessage message;
};

// End the connection after what was told. FIN is a farewell; in every other case it is reset (R4).
struct Disconnect {
  bool is_reset = false;
};

// The connection is dead, though nobody said so: reset it and make another.
struct Reconnect {
  bool is_elsewhere = false;  // another place is tried first
};

// Further places where the coordinator may be, the likeliest first. `is_sure`: it is at the first.
struct Routes {
  std::vector<Endpoint> places;
  bool is_sure = false;
};

// Lead the job from here on, in this process and at our control port (R16), and connect to that.
struct BecomeCoordinator {
  Term term;
  control::Standby place;
};

struct StartWorkers {
  control::RankAssignment assignment;
};

// TERM-like signal and CONT to all workers at once, KILL after `grace`.
struct StopWorkers {
  int signal = 0;
  Duration grace{};
  // Workers that have said that they save when asked are asked, and get no signal.
  bool lets_save = false;
  // Asked for the second time: what SIGKILL does not end is soon waited for no longer.
  bool is_urgent = false;
};

// Workers that were only asked get the signal after all: what they wanted to save can't be.
struct EndSaving {
  int signal = 0;
};

// Reserve a port for worker 0 of the next round.
struct ReservePort {};

// Look at what lies in --snapshot-dir: Agent::on_snapshots().
struct ScanSnapshots {};

// Bring this snapshot into --snapshot-dir: Agent::on_fetched() or on_fetch_failed().
struct FetchSnapshot {
  control::ResumePoint resume;
  std::string secret;
};

// Shards in memory that this node lacks, as replicas of them may lie at a neighbour: bring them
// here. Answered by Agent::on_replicas_fetched(), whatever comes of it.
struct FetchReplicas {
  control::PeerAddress at;
  control::RankAssignment assignment;
};

// From now on keep replicas of the shards of that node; nothing: of nobody's. Replicas that are
// here stay until there are newer ones.
struct KeepReplicas {
  std::optional<control::PeerAddress> of;
  std::string secret;
};

// What was to be fetched or sought is not wanted any more; it is not answered.
struct DropFetch {};

// Other nodes that show this secret may fetch snapshots from here; empty: nobody may. The one
// before counts no more.
struct ServeSnapshots {
  std::string secret;
};

// The reaper process kills the workers at this time if nobody moves it (R6).
struct SetWorkerLease {
  Instant deadline;
};

// A worker has failed, the first one of its round here: for the console.
struct FirstFailure {
  WorkerExit end;
  control::RankAssignment assignment;
};

struct LogEvent {
  enum class Level { Debug, Info, Warning } level = Level::Info;
  std::string text;
};

// The run is over. Nothing follows.
struct Finish {
  enum class How {
    Success,
    Failure,  // decided by the coordinator: workers failed, or a node could not start them
    Error,    // refused, timed out, cut off: `text` says it
    Signal,   // ended by a signal to us. `text`: what it waited for
    Stopped,  // on request, and nothing is lost: the same command continues. `text`: who else was
              // asked, where there is a decision; else what it waited for
    Unusable  // SIGKILL did not end what runs here: `text` names it
  };
  How how = How::Success;
  int signal = 0;                // that asked us to go; 0: none did
  std::string text;              // the failure summary, or the error
  std::vector<WorkerExit> ends;  // of the last round here that had a failure
  int64_t restarts_used = 0;
  int64_t admin_restarts = 0;
  std::optional<control::SnapshotName> snapshot{};  // the newest here
  bool has_saved = false;  // of Stopped, with a signal: workers of ours have saved, for it
  Instant stays_until{};   // with a signal: others may need the coordinator in this process so long
  std::string lost{};  // the node whose loss ended the last round, and how; empty: another cause
  std::optional<control::JobResult> job_result{};  // what the coordinator said, if it did
  bool ran_no_worker = false;                      // this node had no part in any round
};

using Effect = std::variant<SendMessage, Disconnect, Reconnect, StartWorkers, StopWorkers,
                            ReservePort, SetWorkerLease, FirstFailure, LogEvent, Finish,
                            ScanSnapshots, FetchSnapshot, DropFetch, ServeSnapshots, EndSaving,
                            FetchReplicas, KeepReplicas, Routes, BecomeCoordinator>;
using Effects = std::vector<Effect>;

}  // namespace cpprun::agent

// The control protocol between an agent and its coordinator: the messages as plain data.
//
// Source and meaning: docs/protocol.md ("Control protocol"), whose rules R1 to R18 the comments
// name. On the wire each message is one frame (frame.hpp) of MessagePack (control_codec.hpp). Every
// message to an agent is O(1) in the number of nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/failure/worker_exit.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/admin/admin_commands.hpp"
#include "rendezvous/protocol/control/progress.hpp"
#include "rendezvous/protocol/log_tail.hpp"

namespace cpprun::control {

inline constexpr int kProtocolVersion = 4;

// ---------------------------------------------------------------- agent -> coordinator

// First message of a connection. Its layout never changes, so that versions can refuse each other
// in words.
struct Hello {
  int64_t protocol = kProtocolVersion;
  std::string version;  // of the program, for people
  std::string run_id;
  NodeId node;
  int64_t connection =
      1;  // grows with each connection of this incarnation; older ones count for nothing (R4)
  // The node's key, which node.incarnation is made from (R10). The coordinator tells it to nobody.
  std::string token;
};

// What the agents of a job must agree on. The first agent's terms are the job's.
struct JobSpec {
  int64_t min_nodes = 1;
  int64_t max_nodes = 1;
  int64_t max_restarts = 0;
  bool has_fixed_ranks = false;        // static: the group rank is the node rank
  bool is_agent_store = false;         // who serves MASTER_PORT: the coordinator, or worker 0
  bool is_store_on_main_port = false;  // static over several nodes: at the coordinator's own port
  std::string master_addr;             // "" = the address of group rank 0
  int64_t master_port = 0;             // 0 = the one that group rank 0 has reserved
  Duration last_call{-1};              // negative: quiet of limits::kLastCall
  Duration scale_up_interval{};
  Duration heartbeat{};
  Duration lease{};
  int64_t startup_failures = 0;  // ends the job after so many in a row; 0: never
  bool operator==(const JobSpec&) const = default;
};

// A complete snapshot in a node's --snapshot-dir. The same id means the same bytes, wherever it
// lies.
struct SnapshotName {
  int64_t step = 0;  // optimizer steps done; its folder is step-<step>
  std::string id;    // 32 hex digits, from its manifest
  bool operator==(const SnapshotName&) const = default;
};

// Where an agent serves other agents.
struct PeerAddress {
  std::string address;  // numeric
  int64_t port = 0;
  bool operator==(const PeerAddress&) const = default;
};

// The one node that may lead the job when its coordinator has died (R14).
struct Standby {
  Incarnation node;
  std::string address;  // numeric, or --local-addr: where others reach its control port
  int64_t port = 0;
};
// The snapshot that a round begins with.
struct ResumePoint {
  SnapshotName snapshot;
  // Where to fetch it before workers start, host and port; empty and 0: this node has it.
  std::string source_address;
  int64_t source_port = 0;
};
// What a node is told of a round. It keeps it, and brings it to the next coordinator (R13).
struct RankAssignment {
  Term term;
  RoundNumber round;
  int64_t group_rank = 0;
  int64_t group_size = 0;
  int64_t base_rank = 0;
  int64_t world_size = 0;
  int64_t base_role_rank = 0;
  int64_t role_world_size = 0;
  std::string master_addr;
  int64_t master_port = 0;
  int64_t store_port = 0;  // the round's store at the coordinator (CPPRUN_STORE)
  bool is_agent_store = false;
  int64_t restart_count = 0;              // job-wide, after workers' failures
  int64_t hang_restarts = 0;              // the same after hangs
  int64_t admin_restarts = 0;             // and those that operators asked for
  std::optional<int64_t> wanted_nodes{};  // as many as an operator asked for
  int64_t max_restarts = 0;
  std::optional<ResumePoint> resume{};  // nothing: from the beginning, or no --snapshot-dir here
  std::string snapshot_secret{};        // who shows it may fetch; empty: nobody may in this round
  // With --snapshot-replicas: of whose shards in memory this node keeps replicas, and, for a node
  // that is new in its place, who may hold replicas of the shards that it lacks.
  std::optional<PeerAddress> replicas_of{};
  std::optional<PeerAddress> replicas_at{};
  int64_t host_rank = -1;  // group rank of the node in the coordinator's own process; -1: none
  bool is_led_by_standby = false;    // formed by a standby, not at the job's endpoint
  bool needs_proof = false;          // orders are taken with a proof of the admin token only
  std::optional<Standby> standby{};  // nothing: nobody else may lead the job (R14)
};
struct JobResult {
  bool is_success = false;
  std::string failure_summary;  // what failed first and what followed; empty after success
  bool is_resumable = false;    // no failure: stopped on request, everything saved
  std::optional<RootCause> root_cause{};  // what failed first, of all nodes
  int64_t world_size = 0;                 // of the round that it ended
  int64_t same_startup_failures = 0;      // rounds in a row that failed at start-up in the same way
};

// Where an agent stands when it (again) registers.
enum class ReportedPhase : int64_t { Idle, Running, Stopped, Done };

// Which budget of restarts a round's failure costs (R7).
enum class RestartCharge : int64_t { None, Failure, Hang };

struct Register {
  JobSpec job_spec;
  std::vector<std::string>
      addresses;           // numeric; the first is the one it used to reach the coordinator
  std::string local_addr;  // --local-addr; beats all addresses
  int64_t nproc = 1;
  std::string role;
  std::optional<int64_t> node_rank;
  int64_t reserved_port = 0;
  ReportedPhase reported_phase = ReportedPhase::Idle;
  RoundNumber round;                      // the last one it took part in
  Term term;                              // the greatest one it has seen
  bool is_draining = false;               // asked to stop; takes part in no further round
  bool has_snapshot_dir = false;          // without one a node has no say in what is resumed from
  std::vector<SnapshotName> snapshots{};  // newest first, at most limits::kSnapshotsReported
  int64_t snapshot_port = 0;              // where other nodes may fetch them; 0: nowhere
  bool keeps_replicas = false;            // --snapshot-replicas=1, and it serves its own shards
  std::vector<int64_t> fault_counts{};    // of each fault of the plan, as far as it has heard
  // Which clock its times are of: nodes that say the same (one machine) have one. Empty: its own.
  std::string clock_domain{};
  int64_t control_port = 0;  // where it would lead the job (R16); 0: nowhere
  // What a coordinator that does not know the job goes on from (R13).
  std::optional<RankAssignment> assignment{};  // of `round`, as this node was told it
  bool has_evidence = false;                   // whoever welcomed it last is dead (R4)
  bool has_worker_lease = false;  // it may have workers of `round`, and has not said stopped
  RestartCharge charged = RestartCharge::None;  // for `round`, as far as this node was told
  std::optional<JobResult> decided{};           // the outcome, if this node knows it
  bool reports_progress = false;                // understands Watch (progress.hpp)
  bool reports_log_lines = false;               // understands Tail (log_tail.hpp)
  // Its user named no job (--rdzv-id): where the job is full it is refused and never a spare.
  bool has_default_run_id = false;
  int64_t pid = 0;  // of the agent, for people
};

struct Ping {
  int64_t seq = 0;
};
struct Started {
  RoundNumber round;
};
struct Failed {
  RoundNumber round;
  WorkerExit end;
  bool is_fatal = false;  // no restart can heal it: the program could not be started
  std::string why{};      // what went wrong before any worker ran; empty: `end` says it
  // Id of the snapshot that could not be fetched because its bytes are not what its manifest says;
  // empty: another reason. Costs no restart: the next round takes another.
  std::string damaged_snapshot{};
  Instant sent_at{};  // on the agent's own clock
};
struct Done {
  RoundNumber round;
};
// All workers of any round are reaped. Brings the port for the next round's worker 0.
struct Stopped {
  RoundNumber round;
  int64_t reserved_port = 0;
  std::vector<SnapshotName> snapshots{};  // as in Register, looked at after the last worker's end
  bool has_saved = false;                 // every worker ended with 0 or kStoppedResumable
  std::optional<WorkerExit> failure{};    // what failed first here, if anything did by itself
};
// Workers are gone and the agent goes: not a death.
struct Leave {
  std::string why;
  bool has_saved = false;    // as in Stopped
  bool is_unusable = false;  // SIGKILL did not end a process there: start nothing on that node
};
// The agent was asked to stop (SIGTERM): its workers save and end, then it leaves.
struct Draining {
  RoundNumber round;
};
// The newest snapshots of this node while a round runs; for status pages.
struct Snapshots {
  std::vector<SnapshotName> snapshots;
  // Id of the snapshot that this round began with, where its workers could not use it: no later
  // round begins with it. Empty: nothing was wrong with it.
  std::string unusable{};
};
struct Ack {
  bool is_success = false;
};

// A fault of the job's plan is about to be injected here: may it? Answered by Struck. The plan
// itself is the agents' own: the coordinator only counts.
struct FaultPermitRequest {
  int64_t fault = 0;  // its number in the plan
  int64_t times = 1;  // how often it may be injected in the job
  std::string where;  // for people
  int64_t step = -1;  // of the program; negative: not known
  int64_t epoch = -1;
};

// Not of an agent: of a coordinator of this job elsewhere, to whoever listens at the job's endpoint
// (R17). After hello, instead of register.
struct AnnounceLeader {
  Term term;
  std::string address;
  int64_t port = 0;
};

using AgentMessage = std::variant<Hello, Register, Ping, Started, Failed, Done, Stopped, Leave, Ack,
                                  Draining, Snapshots, FaultPermitRequest, AdminCommand, AdminHello,
                                  AdminRequest, Progress, LogLines, AnnounceLeader>;

// ---------------------------------------------------------------- coordinator -> agent

struct Registered {
  Term term;
  std::string coordinator;  // its host name, for people
  std::string version;
  Duration heartbeat{};  // zero: the agent lives in the coordinator's own process, no pings, no
                         // worker lease
  Duration lease{};
  bool is_standby = false;  // of the round that runs, or ran last
};
// An agent of the job that runs, for people.
struct Occupant {
  std::string host;
  int64_t pid = 0;
};
struct Refused {
  std::string why;
  // The job is full, and the agent was given no run id of its own: this agent runs it.
  std::optional<Occupant> occupant{};
};
// No round for this agent yet.
struct Wait {
  std::string why;
  bool is_spare = false;  // a round runs without it; the join timeout does not count
  bool is_reminder =
      false;  // said again after limits::kWaitReminderInterval; worth a line for people
  std::optional<Standby> standby{};  // who was in no round yet has no world that says it (R14)
};
struct Pong {
  int64_t seq = 0;
  Duration
      worker_lease{};  // F: workers may live until the send time of the ping + worker lease (R6)
};
enum class StopCause : int64_t { Failure, NodeLost, NodeLeft, Growth, Operator, Drain, Snapshot };
struct Stop {
  RoundNumber round;
  StopCause cause = StopCause::Failure;
  std::string why;
  RestartCharge charged = RestartCharge::None;
};
struct Bye {};
// A fault strikes: told to all. Or the answer that it may not, to whoever asked. Answers come in
// the order of the questions.
struct FaultPermit {
  int64_t fault = 0;
  int64_t count = 0;  // of its strikes so far, this one included
  bool is_permitted = false;
  bool is_answer = false;  // to a Strike of this agent
  std::string where{};
  int64_t step = -1;
  int64_t epoch = -1;
};

// The job is led from there (R17).
struct Redirect {
  Term term;
  std::string address;
  int64_t port = 0;
};

using CoordinatorMessage =
    std::variant<Registered, Refused, Wait, RankAssignment, Pong, Stop, JobResult, Bye, FaultPermit,
                 AdminReply, ShutdownRequest, Challenge, Watch, LogTailRequest, Redirect>;

// The causes for which a round stops, as words: events, metrics and pages use the same
// (docs/events.md, "A round").

// "failure", "node_lost", "node_left", "growth", "admin", "drain", "snapshot".
constexpr const char* name_of(StopCause cause) {
  switch (cause) {
    case StopCause::Failure:
      return "failure";
    case StopCause::NodeLost:
      return "node_lost";
    case StopCause::NodeLeft:
      return "node_left";
    case StopCause::Growth:
      return "growth";
    case StopCause::Operator:
      return "admin";
    case StopCause::Drain:
      return "drain";
    case StopCause::Snapshot:
      return "snapshot";
  }
  return "unknown";
}

}  // namespace cpprun::control

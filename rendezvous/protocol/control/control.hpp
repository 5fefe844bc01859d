// The control protocol between an agent and its coordinator: the messages as plain data.
// Source: docs/protocol.md ("Control protocol"), which defines the rules R1 to R18. On the wire
// each message is one frame (frame.hpp) of MessagePack (control_codec.hpp). Every message to an
// agent is O(1) in the number of nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/failure/worker_exit.hpp"
#include "common/ids.hpp"
#include "common/straggler_policy.hpp"
#include "common/time.hpp"
#include "common/worker_starts.hpp"
#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun::control {

inline constexpr int kProtocolVersion = 6;

// ---------------------------------------------------------------- agent to coordinator

// First message of a connection. Its layout never changes, so that a coordinator can refuse another
// version with a readable text.
struct Hello {
  int64_t protocol = kProtocolVersion;
  std::string version;  // of the program, for people
  std::string run_id;
  NodeId node;
  // Grows with each connection of this incarnation; the coordinator ignores older connections (R4).
  int64_t connection = 1;
  // The node's key, from which node.incarnation is derived (R10). The coordinator keeps it secret.
  std::string token;
};

// What the agents of a job must agree on. The first agent's values apply to the job.
struct JobSpec {
  int64_t min_nodes = 1;
  int64_t max_nodes = 1;
  int64_t max_restarts = 0;
  bool has_fixed_ranks = false;  // static: the group rank is the node rank
  bool is_agent_store = false;   // MASTER_PORT is served by the coordinator; false: by worker 0
  // With is_agent_store: clients from other addresses than those of the job's nodes are refused.
  bool is_store_for_members = false;
  // Static, several nodes: MASTER_PORT is the coordinator's own.
  bool is_store_on_main_port = false;
  std::string master_addr;  // "" = the address of group rank 0
  int64_t master_port = 0;  // 0 = the port that group rank 0 reserved
  Duration last_call{-1};   // negative: limits::kLastCall without a newcomer
  // The scheduler starts this many agents, and the first round waits for them (for
  // limits::kExpectedNodesWait) unless last_call is given. 0: unknown.
  int64_t expected_nodes = 0;
  Duration scale_up_interval{};
  Duration heartbeat{};
  Duration lease{};
  int64_t startup_failures = 0;  // this many in a row end the job; 0: never
  int64_t link_check_bytes = 0;  // that each node of a pair sends before a round; 0: no check
  int64_t exclude_after = 0;     // faults of a host that exclude it; 0: never
  bool stops_on_repeat = false;  // a failure that a restart cannot heal ends the job
  int64_t max_hangs = -1;        // restarts after hangs; negative: as many as max_restarts
  int64_t max_node_losses = -1;  // rounds that lost nodes may end; negative: any number
  Duration restart_backoff{};    // of restarts in quick succession; zero: they begin at once
  StragglerPolicy stragglers = StragglerPolicy::Report;
  bool operator==(const JobSpec&) const = default;
};

// A complete snapshot in a node's --snapshot-dir. Equal ids mean equal bytes on every node.
struct SnapshotName {
  int64_t step = 0;  // optimizer steps done; its folder is step-<step>
  std::string id;    // 32 hex digits, from its manifest
  bool operator==(const SnapshotName&) const = default;
};

// Where an agent serves shards and snapshots to other agents.
struct PeerAddress {
  std::string address;  // numeric
  int64_t port = 0;
  bool operator==(const PeerAddress&) const = default;
};

// Why no agent on a host takes part in rounds. Policy: --exclude-after.
enum class Exclusion : int64_t { None, Policy, Operator };

// What the coordinator knows of a host with faults, or of an excluded one.
struct HostRecord {
  std::string host;
  int64_t failures = 0;       // rounds whose root cause was a worker there
  int64_t failed_starts = 0;  // the same, before a worker ran or right after its start
  int64_t hangs = 0;
  int64_t failed_checks = 0;  // of --node-check
  int64_t losses = 0;
  int64_t slow = 0;  // how often a rank there was found slow; no fault
  Exclusion exclusion = Exclusion::None;
  std::string reason{};  // why it is excluded, else its newest fault

  int64_t faults() const { return failures + failed_starts + hangs + failed_checks + losses; }
  bool is_excluded() const { return exclusion != Exclusion::None; }
  bool operator==(const HostRecord&) const = default;
};
// Coordinator to agents, after each change; an agent keeps the newest and reports it to the next
// coordinator. At most limits::kHostRecords.
struct HostRecords {
  int64_t revision = 0;  // grows with each change in the job
  std::vector<HostRecord> hosts;

  // The names of the excluded hosts.
  std::vector<std::string> excluded() const {
    std::vector<std::string> names;
    for (const HostRecord& record : hosts) {
      if (record.is_excluded()) names.push_back(record.host);
    }
    return names;
  }
};

// The newest result of --node-check on a node; Passed also without the option.
enum class CheckState : int64_t { Passed, Pending, Failed };
struct NodeCheck {
  CheckState state = CheckState::Passed;
  std::string why{};  // Failed: for people
};

// The standby coordinator: the only node that may lead the job after its coordinator died (R14).
struct Standby {
  Incarnation node;
  std::string address;  // numeric, or --local-addr; other nodes reach its control port here
  int64_t port = 0;
};
// The snapshot from which a round resumes.
struct ResumePoint {
  SnapshotName snapshot;
  // Where the node fetches it before its workers start; empty and 0: the node has it.
  std::string source_address;
  int64_t source_port = 0;
};
// What a coordinator knows of the job's failures before a round, to detect restarts that cannot
// help.
struct PastFailures {
  std::string last;            // fingerprint of the newest one; empty: none
  int64_t last_step = -1;      // the step at which it came; -1: unknown
  int64_t repeats = 0;         // how often in a row it came at that step
  int64_t fruitless = 0;       // failures in a row whose rounds made no progress
  int64_t best_step = -1;      // the last step that any round had finished; -1: unknown
  int64_t best_snapshot = -1;  // step of the newest snapshot; -1: none
  int64_t quick = 0;           // restarts in quick succession and without progress (JobSpec)
  bool operator==(const PastFailures&) const = default;
};
// Restart budgets that are not given by max_restarts alone.
struct ClassBudgets {
  int64_t max_hangs = -1;        // negative: as many as max_restarts
  int64_t node_losses = 0;       // job-wide, charged to max_node_losses
  int64_t max_node_losses = -1;  // negative: any number, and none is counted
  bool operator==(const ClassBudgets&) const = default;
};
// A node's part of a round. The agent keeps it and reports it to the next coordinator, which
// restores the job's state from it (R13).
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
  int64_t restart_count = 0;              // job-wide, after worker failures
  int64_t hang_restarts = 0;              // job-wide, after hangs
  int64_t admin_restarts = 0;             // job-wide, requested by operators
  std::optional<int64_t> wanted_nodes{};  // set by the admin command scale
  int64_t max_restarts = 0;
  std::optional<ResumePoint> resume{};  // empty: from the beginning, or no --snapshot-dir here
  // Agents fetch snapshots with it; empty: no transfers in this round.
  std::string snapshot_secret{};
  // With --snapshot-replicas. `replicas_of`: the node whose in-memory shards this node copies.
  // `replicas_at`: for a node that is new in its place, the node that may hold replicas of the
  // shards it lacks.
  std::optional<PeerAddress> replicas_of{};
  std::optional<PeerAddress> replicas_at{};
  int64_t host_rank = -1;          // group rank of the node in the coordinator's process; -1: none
  bool is_led_by_standby = false;  // a standby leads it, not the coordinator at the job's endpoint
  bool needs_admin_token = false;  // admin commands need a MAC made with the admin token
  std::optional<Standby> standby{};  // empty: no other node may lead the job (R14)
  // Random, the same in all rounds of the job; spares do not get it. A later coordinator believes
  // the report of an outcome, and the announcement of a leader, by it (R10).
  std::string job_key{};
  std::optional<PastFailures> past_failures{};  // empty: nothing is known of any
  std::optional<ClassBudgets> budgets{};        // empty: none of them is given
};
inline ClassBudgets class_budgets(const RankAssignment& assignment) {
  return assignment.budgets.value_or(ClassBudgets());
}
struct JobResult {
  bool is_success = false;
  std::string failure_summary;  // what failed first, and what followed; empty after success
  bool is_resumable = false;    // stopped on request, everything saved
  std::optional<RootCause> root_cause{};  // of all nodes
  int64_t world_size = 0;                 // of the last round
  int64_t same_startup_failures = 0;  // consecutive rounds that failed at start-up in the same way
  int64_t same_failures = 0;          // consecutive rounds with this failure at this step
  std::string why_no_retry{};         // why another try cannot help; empty: it may
};

// An agent's state when it registers.
enum class ReportedPhase : int64_t { Idle, Running, Stopped, Done };

// The restart budget to which the end of a round is charged (R7).
enum class RestartCharge : int64_t { None, Failure, Hang, NodeLoss };

struct Register {
  JobSpec job_spec;
  // Numeric; the first is the local address of the connection to the coordinator.
  std::vector<std::string> addresses;
  // With is_agent_store: of the node's interfaces, without loopback. From here its workers may
  // connect to the store.
  std::vector<std::string> interface_addresses{};
  std::string local_addr;  // --local-addr; overrides `addresses`
  int64_t nproc = 1;
  std::string role;
  std::optional<int64_t> node_rank;
  int64_t reserved_port = 0;
  ReportedPhase reported_phase = ReportedPhase::Idle;
  RoundNumber round;                      // the last one that the node took part in
  Term term;                              // the greatest that the agent has seen
  bool is_draining = false;               // the node takes part in no further round
  bool has_snapshot_dir = false;          // only such nodes count in the choice of the snapshot
  std::vector<SnapshotName> snapshots{};  // newest first, at most limits::kSnapshotsReported
  int64_t snapshot_port = 0;              // where other nodes fetch them; 0: nowhere
  bool keeps_replicas = false;  // --snapshot-replicas=1, and the agent serves its own shards
  std::vector<int64_t> fault_counts{};  // known injections of each fault of the plan
  // Identifies the monotonic clock; nodes on one machine report the same value, so their times can
  // be compared. Empty: the node shares its clock with no other.
  std::string clock_domain{};
  int64_t control_port = 0;  // where the agent would lead the job as standby (R16); 0: it cannot
  // A coordinator that does not know the job restores its state from these (R13).
  std::optional<RankAssignment> assignment{};   // of `round`
  bool has_evidence = false;                    // proof that its last coordinator is dead (R4)
  bool knows_standby = false;                   // another node is the standby, or leads (R14)
  bool has_worker_lease = false;                // workers of `round` may run; no Stopped was sent
  RestartCharge charged = RestartCharge::None;  // for `round`, as far as the node knows
  bool is_stop_requested = false;               // a drain or an admin command has ended `round`
  std::optional<JobResult> decided{};           // if the node knows the outcome
  bool reports_progress = false;                // supports Watch
  bool reports_log_lines = false;               // supports LogTailRequest
  // The user gave no --rdzv-id. Where the job is full, the coordinator refuses such an agent
  // instead of keeping it as a spare.
  bool has_default_run_id = false;
  int64_t pid = 0;  // of the agent, for people
  std::optional<HostRecords> host_records{};
  NodeCheck node_check{};
  bool knows_slow_ranks = false;  // understands SlowRank
  bool reads_log_files = false;   // answers LogRequest
  // With --link-check: where other nodes of the job check their link to this one, and what they
  // must send. 0: the node checks no links.
  int64_t link_port = 0;
  std::string link_secret{};
};

struct Ping {
  int64_t seq = 0;
};
struct Started {
  RoundNumber round;
  WorkerStarts starts{};
};
struct Failed {
  RoundNumber round;
  WorkerExit end;
  bool is_fatal = false;  // not retryable: the program could not be started
  std::string why{};      // an error before any worker ran; empty: see `end`
  // Id of a snapshot whose fetched bytes do not match its manifest; empty: another failure. Costs
  // no restart, since the next round resumes from another snapshot.
  std::string damaged_snapshot{};
  Instant sent_at{};  // on the agent's clock
};
struct Done {
  RoundNumber round;
};
// All workers are reaped. Carries the port reserved for worker 0 of the next round.
struct Stopped {
  RoundNumber round;
  int64_t reserved_port = 0;
  std::vector<SnapshotName> snapshots{};  // as in Register, read after the last worker's exit
  bool has_saved = false;                 // every worker exited with 0 or kStoppedResumable
  // The first failure on this node that the agent did not cause.
  std::optional<WorkerExit> failure{};
  int64_t step = -1;       // the last that any worker here finished, by its heartbeats; -1: unknown
  NodeCheck node_check{};  // made after the last worker's exit
};
// The workers are gone and the agent exits in order; the node is not lost.
struct Leave {
  std::string why;
  bool has_saved = false;    // as in Stopped
  bool is_unusable = false;  // a process survived SIGKILL: start nothing on this node
};
// The agent received SIGTERM: its workers save and exit, then it leaves.
struct Draining {
  RoundNumber round;
};
// The newest snapshots of this node while a round runs, for status pages.
struct Snapshots {
  std::vector<SnapshotName> snapshots;
  // Id of the snapshot from which this round resumed, if the workers could not use it; no later
  // round resumes from it. Empty: it was good.
  std::string unusable{};
};
// The answer to CheckLink.
struct LinkResult {
  int64_t number = 0;  // of the CheckLink
  std::string why;     // why the link has failed, for people; empty: it has passed
  int64_t bytes = 0;   // both directions together
  Duration took{};
};
struct Ack {
  bool is_success = false;
};

// The agent is about to inject a fault of the job's plan and asks for a permit (FaultPermit). The
// agents hold the plan; the coordinator only counts.
struct FaultPermitRequest {
  int64_t fault = 0;  // its number in the plan
  int64_t times = 1;  // how often it may be injected in the job
  std::string where;  // for people
  int64_t step = -1;  // of the program; negative: not known
  int64_t epoch = -1;
};

// From a coordinator that leads this job elsewhere to the process that listens at the job's
// endpoint (R17). Follows Hello in place of Register.
struct AnnounceLeader {
  Term term;
  std::string address;
  int64_t port = 0;
  std::string mac{};  // made with RankAssignment::job_key
};

// Progress of the workers, for the dashboard (Watch); no decision depends on it. The agent sends it
// at most once a second, and only when a value changed. Indexed by local rank, at most
// limits::kProgressWorkers; -1: unknown.
struct Progress {
  RoundNumber round;
  std::vector<int64_t> steps;
  std::vector<int64_t> step_us;  // duration of the last step, in microseconds
  bool operator==(const Progress&) const = default;
};
// The worker processes of this node in a round, for people; no decision depends on it. The agent
// sends it when all have started, after it has connected again, and while the dashboard has readers
// (Watch) when the memory has changed, at most each limits::kProcessesInterval. By local rank, at
// most limits::kProgressWorkers.
struct WorkerProcesses {
  RoundNumber round;
  std::vector<int64_t> pids;
  std::vector<int64_t> memory_mib;  // resident; -1: unknown
  std::string log_dir;  // holds a folder of log files per local rank; empty: there are none
  bool operator==(const WorkerProcesses&) const = default;
};
// How the job has used its time as the node of group rank 0 sees it, for /metrics. By GoodputPhase;
// the node sends it at the end of each round and at most each limits::kTimeSpentInterval.
struct TimeSpent {
  std::vector<Duration> spent;
  int64_t submissions = 1;  // of the job that these are of, this one included (--state-dir)
};
// Compute times of the workers, by which the coordinator finds slow ranks. An agent sends them only
// if workers report theirs, at most each limits::kComputeTimesInterval. By local rank, at most
// limits::kProgressWorkers, over the steps since the last report; 0 steps: unknown.
struct ComputeTimes {
  RoundNumber round;
  std::vector<int64_t> steps;
  std::vector<int64_t> compute_us;  // mean of a step
};
// The last log lines of one worker, for the dashboard (LogTailRequest). The agent sends them at
// most once a second, and only when there are new ones. At most limits::kTailLines of each stream,
// each at most limits::kLineBytesReported, unchanged as the worker wrote them.
struct LogLines {
  RoundNumber round;
  int64_t local_rank = 0;
  bool has_files = false;  // the job keeps log files of that worker; false: no lines exist
  std::vector<std::string> out;
  std::vector<std::string> err;
  bool operator==(const LogLines&) const = default;
};

// Reads log files of all nodes for an operator's tool (`cpprunctl logs --all-nodes`). The tool
// keeps the positions, so neither the coordinator nor an agent keeps anything for it. From a tool
// to the coordinator, which passes it on to the agent of `node`; the reply is a LogReply with the
// same id.
struct LogRequest {
  int64_t id = 0;        // chosen by the sender
  std::string run_id{};  // "" = the only job
  std::string mac{};     // of a tool's first request: HMAC of log_request_mac_input()
  int64_t reader = 0;    // from the coordinator: the number of the tool
  Incarnation node{};    // 0: asks for the list of nodes
  int64_t skip = 0;      // of the list: so many of the first
  RoundNumber round{};   // 0: the first that the agent still knows, or with `lines` the newest
  int64_t lines = -1;    // of files that have no position yet: only the last so many; -1: all
  // By stream: stdout of local rank 0, its stderr, stdout of local rank 1, and so on. At most
  // 2 * limits::kProgressWorkers; missing ones: not read yet.
  std::vector<int64_t> offsets{};
  std::vector<int64_t> files{};  // inode numbers, 0: not read yet
};
// Why a part of a log file does not follow the one before it.
enum class LogGap : int64_t { None, Truncated, Replaced, Removed };
// Bytes of one log file.
struct LogPart {
  int64_t stream = 0;  // as in LogRequest
  int64_t offset = 0;  // of the first byte
  int64_t file = 0;    // inode number
  LogGap gap = LogGap::None;
  std::string bytes;  // at most limits::kLogPartBytes
};
struct LogNode {
  NodeId id;
  int64_t group_rank = -1;  // in the newest round; -1: none
  bool can_read = false;    // it is connected, and its agent understands LogRequest
};
struct LogReply {
  int64_t id = 0;
  std::string why{};  // why there is no answer; empty: here it is
  // The list of nodes, at most limits::kLogNodes.
  bool is_job_over = false;
  int64_t nodes_in_all = 0;
  std::vector<LogNode> nodes{};
  // Of a node.
  RoundNumber round{};
  RoundNumber next_round{};  // the next that the agent knows; 0: none
  int64_t base_rank = 0;     // the rank of local rank 0
  bool has_files = false;    // the job keeps log files
  bool is_ended = false;     // all workers of the round have ended and written all
  bool has_more = false;     // the files continue behind the parts
  std::vector<LogPart> parts{};
};

using AgentMessage =
    std::variant<Hello, Register, Ping, Started, Failed, Done, Stopped, Leave, Ack, Draining,
                 Snapshots, FaultPermitRequest, AdminCommand, AdminHello, AdminRequest, Progress,
                 LogLines, AnnounceLeader, TimeSpent, NodeCheck, ComputeTimes, WorkerProcesses,
                 LogRequest, LogReply, LinkResult>;

// ---------------------------------------------------------------- coordinator to agent

struct Registered {
  Term term;
  std::string coordinator;  // its host name, for people
  std::string version;
  // Zero: the agent runs in the coordinator's process; no pings, no worker lease.
  Duration heartbeat{};
  Duration lease{};
  bool is_standby = false;           // of the current or the last round
  bool takes_time_spent = false;     // knows the message TimeSpent; earlier versions do not
  bool takes_compute_times = false;  // the same of ComputeTimes
  bool takes_processes = false;      // the same of WorkerProcesses
};
// An agent of the running job, for people.
struct Occupant {
  std::string host;
  int64_t pid = 0;
};
struct Refused {
  std::string why;
  // Set if the job is full and the agent has the default run id: an agent that runs the job.
  std::optional<Occupant> occupant{};
  // The coordinator leads another job and no other. The agent's job may be led at the next of its
  // ports.
  bool is_other_job = false;
};
// No round for this agent yet.
struct Wait {
  std::string why;
  bool is_spare = false;     // a round runs without the node; the join timeout does not count
  bool is_reminder = false;  // repeated after limits::kWaitReminderInterval; the agent prints it
  std::optional<Standby> standby{};  // for a node that has no rank assignment yet (R14)
  // The coordinator does not know the job that a standby leads, and waits for a redirect (R17).
  bool awaits_redirect = false;
  bool is_excluded = false;   // the host of the agent is; `why`: the reason
  int64_t missing_nodes = 0;  // the job has so many too few for a round
  // The next round is delayed by this from the end of the last one; at most
  // limits::kRestartBackoffMax. Zero: it forms as soon as there are enough nodes.
  Duration delay{};
};
struct Pong {
  int64_t seq = 0;
  // Workers may run until the ping's send time + worker_lease (R6).
  Duration worker_lease{};
};
enum class StopCause : int64_t {
  Failure,
  NodeLost,
  NodeLeft,
  Growth,
  Operator,  // a restart of all workers by command
  Drain,
  Snapshot,
  Scale,      // by command
  Exclusion,  // of a host, by command or because a rank there is slow
};
// Workers that can save do so first, and what fails meanwhile costs no restart.
constexpr bool is_requested(StopCause cause) {
  return cause == StopCause::Operator || cause == StopCause::Drain || cause == StopCause::Scale ||
         cause == StopCause::Exclusion;
}
struct Stop {
  RoundNumber round;
  StopCause cause = StopCause::Failure;
  std::string why;
  RestartCharge charged = RestartCharge::None;
};
struct Bye {};
// A permitted fault, sent to all agents; or the denial, sent to the agent that asked. Replies come
// in the order of the requests.
struct FaultPermit {
  int64_t fault = 0;
  int64_t count = 0;  // injections so far, this one included
  bool is_permitted = false;
  bool is_answer = false;  // to this agent's FaultPermitRequest
  std::string where{};
  int64_t step = -1;
  int64_t epoch = -1;
};

// The coordinator at this address leads the job (R17).
struct Redirect {
  Term term;
  std::string address;
  int64_t port = 0;
};

// Report progress for this long; zero: stop. Sent while a browser shows the dashboard, to agents
// whose registration announced support.
struct Watch {
  Duration lasts{};
};
// Send the last lines of this worker for this long. Sent while an authenticated browser shows them,
// to agents whose registration announced support.
struct LogTailRequest {
  int64_t local_rank = 0;
  Duration lasts{};
};

// A rank of this node has become slow, or is no longer slow. Sent to agents whose registration
// announced support.
struct SlowRank {
  RoundNumber round;
  int64_t rank = 0;
  bool is_slow = false;
  int64_t compute_us = 0;  // of its newest steps
  int64_t median_us = 0;   // of all ranks
  std::string action{};    // what the coordinator does about it; empty: nothing
};

// Exchange data with another agent of the job, and report how it went. Sent to agents whose
// registration had a link port, before a round.
struct CheckLink {
  int64_t number = 0;
  PeerAddress peer;
  std::string secret;  // of the peer
  int64_t bytes = 0;   // that each of the two sends
};

using CoordinatorMessage =
    std::variant<Registered, Refused, Wait, RankAssignment, Pong, Stop, JobResult, Bye, FaultPermit,
                 AdminReply, ShutdownRequest, Challenge, Watch, LogTailRequest, Redirect,
                 HostRecords, SlowRank, LogRequest, LogReply, CheckLink>;

// The input of the MAC in a tool's first LogRequest: the nonce of its Challenge, and the run id.
inline std::string log_request_mac_input(const std::string& nonce, const std::string& run_id) {
  return "cpprun log files\n" + nonce + "\n" + run_id;
}

// Names of the causes, as events, metrics and pages show them (docs/reference/events.md).
constexpr const char* name_of(StopCause cause) {
  switch (cause) {
    case StopCause::Failure: return "failure";
    case StopCause::NodeLost: return "node_lost";
    case StopCause::NodeLeft: return "node_left";
    case StopCause::Growth: return "growth";
    case StopCause::Operator: return "admin";
    case StopCause::Drain: return "drain";
    case StopCause::Snapshot: return "snapshot";
    case StopCause::Scale: return "scale";
    case StopCause::Exclusion: return "exclusion";
  }
  return "unknown";
}

constexpr const char* name_of(CheckState state) {
  switch (state) {
    case CheckState::Passed: return "passed";
    case CheckState::Pending: return "pending";
    case CheckState::Failed: return "failed";
  }
  return "unknown";
}

constexpr const char* name_of(Exclusion exclusion) {
  switch (exclusion) {
    case Exclusion::None: return "none";
    case Exclusion::Policy: return "policy";
    case Exclusion::Operator: return "operator";
  }
  return "unknown";
}

}  // namespace cpprun::control

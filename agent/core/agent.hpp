// The state machine of one node's agent. It joins the job, starts the workers of each round, stops
// them, reports their exits to the coordinator, and decides when the run ends. Rules R1, R4, R6,
// R9, R13 and R16 to R18 of docs/protocol.md.
//
// Pure: no I/O, clock or randomness. The same calls in the same order give the same effects.
//
//   Joining --assignment--> Starting --worker lease--> Running --all exit 0--> Done --Bye--> Ended
//      ^                                           | failure, Stop, lease over     | Stop
//      |                                           v                               v
//      +-------------- Stopped <--workers gone-- Stopping                       Stopped
//   Running --SIGTERM--> Draining --workers gone--> Saved --snapshots scanned--> Ended
//   Running, Stopping --other signal--> Leaving --workers gone--> Ended
//   any state without workers --signal--> Ended
//   any state --stuck process--> Ended
//
// In Stopped and Starting the agent may hold survivors (survivors.hpp): workers that have left
// their process group and wait for the next round. They run under the worker lease too.
//
// A second SIGINT or SIGQUIT kills the workers at once. A second SIGTERM or SIGHUP has no effect.
//
// In Starting the agent may first fetch a snapshot, and the daemon then prepares the round's files;
// the agent starts no worker before both are done.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/effects.hpp"
#include "agent/core/node_check_schedule.hpp"
#include "agent/core/resume_wait.hpp"
#include "agent/core/survivors.hpp"
#include "agent/core/worker_exits.hpp"
#include "agent/core/worker_lease.hpp"
#include "common/endpoint.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

struct AgentOptions {
  control::Hello hello;     // of the first connection; later connections count up
  control::Register facts;  // without the fields that change: phase, round, term, port, addresses
  std::string endpoint;     // of the job, as the user wrote it
  Duration join_timeout{};
  Duration stop_grace{};
  control::HostRecords host_records{};  // of earlier jobs (--state-dir)
  bool has_node_check = false;          // --node-check
  bool is_led_by_election = false;      // on_led_from() names the coordinator's address (R18)
  bool keeps_survivors = false;         // workers that can regroup stay alive after a failure
  bool has_further_ports = false;       // the coordinator of another job is no reason to give up
};

class Agent {
 public:
  enum class State {
    Joining,
    Starting,
    Running,
    Stopping,
    Stopped,
    Done,
    Leaving,
    Draining,  // the workers save their work and exit, on request
    Saved,     // the workers have exited; the daemon scans their snapshots
    Ended
  };

  explicit Agent(AgentOptions options)
      : options_(std::move(options)),
        host_records_(options_.host_records),
        check_(options_.has_node_check),
        survivors_(options_.keeps_survivors) {}

  // Call once, before every other function.
  void start(Instant now, Effects& effects);

  // The daemon has connected to a coordinator at `peer` (numeric). `addresses` are this node's own
  // on that connection.
  void on_connected(Instant now, std::vector<std::string> addresses, const Endpoint& peer,
                    Effects& effects);
  // The kernels of these hosts answered that no process listens there. If one is the coordinator's
  // address, the coordinator is dead (R4).
  void on_refused(Instant now, const std::vector<Endpoint>& places, Effects& effects);
  // The election names `place` as the coordinator's address (R18).
  void on_led_from(const Endpoint& place, Effects& effects);
  void on_message(Instant now, const control::CoordinatorMessage& message, Effects& effects);
  void on_disconnected(Instant now, Effects& effects);
  // The connection can never be made again; `error` holds the reason.
  void on_unreachable(Instant, const Error& error, Effects& effects) {
    if (state_ != State::Ended) finish(Finish::error(error.text), effects);
  }

  // This worker reports its steps and has finished none in this round. Comes before
  // on_worker_exit().
  void on_no_step(LocalRank worker) { exits_.on_no_step(worker); }
  // A worker has completed its first step of this round.
  void on_step() { survivors_.on_step(); }
  // A worker can regroup. Comes before its on_step().
  void on_can_regroup() { survivors_.on_can_regroup(); }
  // Whether a worker saves on request, before each message of the coordinator.
  void on_savers(bool can_save) { survivors_.on_savers(can_save); }
  // A worker has failed; on_worker_exit() with its last lines follows. The agent stops the other
  // workers at once, because the lines may take limits::kLastLinesTimeout.
  void on_worker_failed(Instant now, const WorkerExit& end, Effects& effects);
  // The reaper process killed the workers at the deadline before the one of the last
  // SetWorkerLease: only this agent was suspended. The round cannot go on, and one of them may
  // outlive SIGKILL.
  void on_workers_killed(Instant, Effects& effects) {
    if (state_ == State::Running) stop_past_worker_lease(Duration{}, effects);
  }
  void on_worker_exit(Instant now, const WorkerExit& end, Effects& effects);
  // All workers are reaped, no process of theirs is left, and their output is written.
  void on_all_workers_gone(Instant now, Effects& effects);
  // As on_all_workers_gone(), but at least one worker has left its process group and waits for the
  // next round. If those end meanwhile, on_all_workers_gone() follows.
  void on_workers_released(Instant now, Effects& effects);
  // SIGKILL did not end a process of the workers; `what` names it. The node is unusable, and the
  // agent ends without waiting for the process.
  void on_stuck(const std::string& what, Effects& effects);
  // The answers to StartWorkers. All workers were spawned; or one could not be, and those before it
  // are gone. ErrorKind::BadValue: a restart cannot help.
  void on_started(Effects& effects) {
    if (state_ != State::Running) return;
    effects.push_back(SendMessage{control::Started{assignment_.round}});
  }
  void on_start_failed(Instant now, const Error& error, Effects& effects);
  void on_port(Instant, int64_t port, Effects& effects) {
    port_ = port;
    if (std::exchange(wants_port_for_stopped_, false)) send_stopped(effects);
  }
  void on_signal(Instant now, int signal, Effects& effects);
  // A worker hangs, and the daemon has collected its stack. The agent ends the round. `hung` says
  // which worker hangs and how (WorkerExit::hang); the worker is still alive.
  void on_hang(Instant now, const WorkerExit& hung, Effects& effects);

  // The port at which this node serves its snapshots to others; 0: none. Sent with the next
  // registration.
  void on_serving(int64_t port) { snapshot_port_ = port; }
  // The port at which other nodes check their link to this one, and what they must send; 0: none.
  // Sent with the next registration.
  void on_serving_links(int64_t port, const std::string& secret) {
    options_.facts.link_port = port;
    options_.facts.link_secret = secret;
  }
  // The port at which this node would serve as the coordinator; 0: none. Sent with the next
  // registration.
  void on_control_port(int64_t port) { control_port_ = port; }
  // The newest complete snapshots on this node, newest first: the answer to ScanSnapshots, or a new
  // snapshot.
  void on_snapshots(Instant now, std::vector<control::SnapshotName> snapshots, Effects& effects);
  // A worker could not load the round's snapshot and resumed from the one of `step` instead; -1:
  // from the beginning. The agent uses the first call of a round only.
  void on_fell_back(int64_t step, Effects& effects);
  void on_fetched(Instant now, Effects& effects) {
    if (!std::exchange(is_fetching_, false)) return;
    if (!is_fetching_replicas_) join_deadline_ = now + options_.join_timeout;
    start_if_leased(now, effects);
  }
  // `is_damaged`: the fetched files do not match their manifest, so that a retry cannot help.
  void on_fetch_failed(Instant now, const Error& error, bool is_damaged, Effects& effects);
  // The answer to FetchReplicas: the shards are here, or the neighbour does not have them.
  void on_replicas_fetched(Instant now, Effects& effects) {
    if (!std::exchange(is_fetching_replicas_, false)) return;
    if (!is_fetching_) join_deadline_ = now + options_.join_timeout;
    start_if_leased(now, effects);
  }
  // The answer to RunNodeCheck; empty: it has passed, else why not.
  void on_node_checked(Instant now, const std::string& why, Effects& effects);
  // The answer to PrepareRound: the workers can start, with or without log files.
  void on_prepared(Instant now, Effects& effects);

  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const;

  State state() const { return state_; }
  const control::HostRecords& host_records() const { return host_records_; }
  const control::RankAssignment& assignment() const { return assignment_; }
  const std::vector<control::SnapshotName>& snapshots() const { return snapshots_; }
  bool has_workers() const;
  // The agent holds a worker lease, so the job has a coordinator and the agent need not look for
  // one.
  bool is_led(Instant now) const {
    return is_connected_ && is_registered_ && now < worker_lease_.sigterm_at();
  }
  // Whether this agent is a candidate for leading the job; false once it is leaving.
  bool would_lead() const { return !is_leaving() && state_ != State::Ended && !job_result_; }
  // Whether the agent may start a coordinator when no process listens at the job's endpoint.
  bool may_host(Instant now) const;

 private:
  enum class Files { None, Awaited, Ready };

  void on(Instant now, const control::Registered& message, Effects& effects);
  void on(Instant now, const control::Refused& message, Effects& effects);
  void on(Instant now, const control::Wait& message, Effects& effects);
  void on(Instant now, const control::RankAssignment& message, Effects& effects);
  void on(Instant now, const control::Pong& message, Effects& effects);
  void on(Instant now, const control::Stop& message, Effects& effects);
  void on(Instant now, const control::JobResult& message, Effects& effects);
  void on(Instant, const control::Bye&, Effects& effects) {
    is_dismissed_ = job_result_.has_value();
    if (is_dismissed_) finish_job(effects);
  }
  void on(Instant now, const control::FaultPermit& message, Effects& effects);
  void on(Instant now, const control::ShutdownRequest& message, Effects& effects);
  // The coordinator sends these to admin tools, never to agents.
  void on(Instant, const control::AdminReply&, Effects&) {}
  void on(Instant, const control::Challenge&, Effects&) {}
  void on(Instant, const control::Watch&, Effects&) {}           // the daemon handles it
  void on(Instant, const control::SlowRank&, Effects&) {}        // an event
  void on(Instant, const control::LogTailRequest&, Effects&) {}  // the daemon handles it
  void on(Instant, const control::LogRequest&, Effects&) {}      // the same
  void on(Instant, const control::CheckLink&, Effects&) {}       // the same
  void on(Instant, const control::LogReply&, Effects&) {}        // to tools only
  void on(Instant now, const control::Redirect& message, Effects& effects);
  // Only the next coordinator needs them.
  void on(Instant, const control::HostRecords& message, Effects&) {
    if (message.revision > host_records_.revision) host_records_ = message;
  }

  bool awaits_answer(Instant now);
  bool is_stopping_past_worker_lease() const;
  bool is_past_worker_lease(Instant now) const {
    return is_stopping_past_worker_lease() && now >= worker_lease_.deadline();
  }
  Instant node_lease_ends() const;
  bool is_leased() const { return heartbeat_ > Duration{}; }
  control::ReportedPhase reported_phase() const;
  bool has_worker_lease(Instant now) const;
  void ping(Instant now, Effects& effects);
  void ping_sooner(Instant now);
  void stop_past_worker_lease(Duration grace, Effects& effects);
  void start_if_leased(Instant now, Effects& effects);
  void cancel_start(Effects& effects);
  void stop_workers(Duration grace, bool lets_save, Effects& effects) {
    state_ = State::Stopping;
    effects.push_back(StopWorkers{kSigTerm, grace, lets_save});
  }
  // After the failure of a worker; `hung`: the one that hangs.
  void stop_after_failure(std::optional<LocalRank> hung, Effects& effects);
  void stop_but_survivors(std::optional<LocalRank> hung, Effects& effects) {
    state_ = State::Stopping;
    survivors_.ask(options_.stop_grace, hung, effects);
  }
  void on_survivors_gone(Instant now, Effects& effects);
  bool needs_worker_lease() const { return has_workers() || survivors_.exist(); }
  void on_failed_save(const WorkerExit& end, Effects& effects);
  // Every worker has saved, has finished, or had not begun.
  bool has_saved() const { return is_drained_ && exits_.have_lost_nothing(); }
  std::string waited_for() const;
  bool is_leaving() const {
    return state_ == State::Leaving || state_ == State::Draining || state_ == State::Saved;
  }
  void on_request(Instant now, Effects& effects);
  void leave_at_once(Effects& effects);
  void leave(Effects& effects);
  void drain(Effects& effects);
  void leave_stopped(Instant now, Effects& effects);
  void leave_after_drain(Effects& effects);
  // The held exit was a failure after all.
  void flush_held_failure(Effects& effects) {
    if (held_failure_) effects.push_back(*held_failure_);
    held_failure_.reset();
  }
  // Every message repeats which snapshot was unusable, so that a lost connection loses that only
  // for a while.
  control::Snapshots newest_snapshots() const {
    return {snapshots_, fell_back_ ? assignment_.resume->snapshot.id : ""};
  }
  void send_stopped(Effects& effects);
  bool is_stopped_unreported() const {
    return wants_port_for_stopped_ || wants_scan_for_stopped_ || wants_check_for_stopped_;
  }
  void become_stopped(Instant now, Effects& effects);
  void finish(Finish finish, Effects& effects);
  void finish_job(Effects& effects);
  void give_up_joining(Effects& effects);

  AgentOptions options_;
  State state_ = State::Joining;
  bool is_connected_ = false;
  bool is_spare_ = false;
  bool knows_standby_ = false;  // another node leads the job now, or is its standby
  bool wants_port_for_stopped_ = false;
  bool wants_scan_for_stopped_ = false;
  bool wants_check_for_stopped_ = false;
  bool is_fetching_ = false;
  bool is_fetching_replicas_ = false;  // shards in a neighbour's memory
  Files files_ = Files::None;          // of assignment_
  bool fell_back_ = false;             // the workers could not load the round's snapshot
  bool is_drained_ = false;            // a request, here or at another node, stops this round
  // Bye was received. If the connection breaks while workers still end, a new one would lead to the
  // next job of that name, of which this node is no member.
  bool is_dismissed_ = false;
  bool is_finishing_ = false;  // the job is over; the agent ends when the workers are gone
  bool lease_killed_ = false;  // the workers of this round got SIGKILL at the end of the lease
  bool ignores_connection_ = false;  // the coordinator on this connection has an older term (R13)
  bool has_warned_ = false;  // logged the older term; reset by a coordinator with a current one
  // The restart budget that the end of assignment_ is charged to.
  control::RestartCharge charged_ = control::RestartCharge::None;
  int64_t connections_ = 0;  // so far
  int64_t port_ = 0;
  int64_t snapshot_port_ = 0;
  int64_t control_port_ = 0;
  Endpoint peer_;               // of the current connection, or of the last one
  Endpoint led_by_;             // the coordinator that accepted the last registration
  bool has_evidence_ = false;   // the coordinator at led_by_ is dead
  bool is_registered_ = false;  // on this connection
  bool is_standby_ = false;     // this node is the standby of assignment_ (R14)
  bool is_leading_ = false;     // this node's own coordinator leads the job now
  std::vector<control::SnapshotName> snapshots_;
  control::HostRecords host_records_;  // the newest
  NodeCheckSchedule check_;
  Term term_;
  control::RankAssignment assignment_;  // the newest one; no older round is accepted
  WorkerExits exits_;                   // of assignment_
  Survivors survivors_;
  // Sent, perhaps not received; every new connection sends it again.
  std::optional<control::Failed> unreported_failure_;
  bool is_exit_awaited_ = false;  // on_worker_failed() stopped the round; its exit follows
  // Not shown yet: if another node drains, this exit belongs to the drain and is no failure.
  std::optional<FirstFailure> held_failure_;
  std::optional<control::JobResult> job_result_;
  int signal_ = 0;           // the signal that ends this agent; 0: none
  Instant signalled_at_;     // when signal_ came
  control::Wait last_wait_;  // the newest
  // The node whose loss ended the last round, and how; empty: the round ended for another reason.
  std::string lost_;

  Duration heartbeat_{};  // zero: the coordinator runs in this process
  Duration lease_{};
  Instant last_message_at_;  // when the last message came, or the connection was made
  WorkerLease worker_lease_;
  ResumeWait resume_wait_;
  Instant ping_at_ = Instant::never();
  Instant join_deadline_ = Instant::never();
  Instant leave_at_;  // in Saved: the agent waits for the scan of --snapshot-dir until then
};

}  // namespace cpprun::agent

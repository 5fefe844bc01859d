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

#include "agent/core/coordinator_link.hpp"
#include "agent/core/effects.hpp"
#include "agent/core/failure_report.hpp"
#include "agent/core/join_wait.hpp"
#include "agent/core/node_facts.hpp"
#include "agent/core/node_leases.hpp"
#include "agent/core/node_round.hpp"
#include "agent/core/round_preparation.hpp"
#include "agent/core/survivors.hpp"
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
        facts_(options_.facts, options_.host_records, options_.has_node_check),
        survivors_(options_.keeps_survivors),
        join_wait_(options_.join_timeout) {}

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
  void on_unreachable(Instant now, const Error& error, Effects& effects);

  // This worker reports its steps and has finished none in this round. Comes before
  // on_worker_exit().
  void on_no_step(LocalRank worker) { round_.exits().on_no_step(worker); }
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
  // SetWorkerLease: only this agent was suspended. The round cannot continue, and one of them may
  // outlive SIGKILL.
  void on_workers_killed(Instant now, Effects& effects);
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
  void on_started(Effects& effects);
  void on_start_failed(Instant now, const Error& error, Effects& effects);
  void on_port(Instant now, int64_t port, Effects& effects);
  void on_signal(Instant now, int signal, Effects& effects);
  // A worker hangs, and the daemon has collected its stack. The agent ends the round. `hung` names
  // the worker that hangs, and how it does (WorkerExit::hang); the worker is still alive.
  void on_hang(Instant now, const WorkerExit& hung, Effects& effects);

  // The port at which this node serves its snapshots to others; 0: none. Sent with the next
  // registration.
  void on_serving(int64_t port) { facts_.on_serving(port); }
  // The port at which other nodes check their link to this one, and what they must send; 0: none.
  // Sent with the next registration.
  void on_serving_links(int64_t port, const std::string& secret) {
    facts_.on_serving_links(port, secret);
  }
  // The port at which this node would serve as the coordinator; 0: none. Sent with the next
  // registration.
  void on_control_port(int64_t port) { facts_.on_control_port(port); }
  // The newest complete snapshots on this node, newest first: the answer to ScanSnapshots, or a new
  // snapshot.
  void on_snapshots(Instant now, std::vector<control::SnapshotName> snapshots, Effects& effects);
  // A worker could not load the round's snapshot and resumed from the one of `step` instead; -1:
  // from the beginning. The agent uses the first call of a round only.
  void on_fell_back(int64_t step, Effects& effects);
  void on_fetched(Instant now, Effects& effects);
  // `is_damaged`: the fetched files do not match their manifest, so that a retry cannot help.
  void on_fetch_failed(Instant now, const Error& error, bool is_damaged, Effects& effects);
  // The answer to FetchReplicas: the shards are here, or the neighbour does not have them.
  void on_replicas_fetched(Instant now, Effects& effects);
  // The answer to RunNodeCheck; empty: it has passed, else why not.
  void on_node_checked(Instant now, const std::string& why, Effects& effects);
  // The answer to PrepareRound: the workers can start, with or without log files.
  void on_prepared(Instant now, Effects& effects);

  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const;

  State state() const { return state_; }
  const control::HostRecords& host_records() const { return facts_.host_records(); }
  const control::RankAssignment& assignment() const { return round_.assignment(); }
  const std::vector<control::SnapshotName>& snapshots() const { return facts_.snapshots(); }
  bool has_workers() const;
  // The agent holds a worker lease, so the job has a coordinator and the agent need not look for
  // one.
  bool is_led(Instant now) const { return link_.is_registered() && leases_.are_renewed(now); }
  // Whether this agent is a candidate for leading the job; false once it is leaving.
  bool would_lead() const { return !is_leaving() && state_ != State::Ended && !job_result_; }
  // Whether the agent may start a coordinator when no process listens at the job's endpoint.
  bool may_host(Instant now) const;

 private:
  void on(Instant now, const control::Registered& message, Effects& effects);
  void on(Instant now, const control::Refused& message, Effects& effects);
  void on(Instant now, const control::Wait& message, Effects& effects);
  void on(Instant now, const control::RankAssignment& message, Effects& effects);
  void on(Instant now, const control::Pong& message, Effects& effects);
  void on(Instant now, const control::Stop& message, Effects& effects);
  void on(Instant now, const control::JobResult& message, Effects& effects);
  void on(Instant now, const control::Bye& message, Effects& effects);
  void on(Instant, const control::FaultPermit& message, Effects&) {
    facts_.on_fault_permit(message);
  }
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
  void on(Instant, const control::HostRecords& message, Effects&) {
    facts_.on_host_records(message);
  }

  bool awaits_answer(Instant now);
  bool is_stopping_past_worker_lease() const;
  Instant node_lease_ends() const;
  control::ReportedPhase reported_phase() const;
  bool has_worker_lease(Instant now) const;
  void stop_past_worker_lease(Duration grace, Effects& effects);
  void start_if_leased(Instant now, Effects& effects);
  void on_fetch_ended(Instant now, Effects& effects);
  void stop_workers(Duration grace, bool lets_save, Effects& effects);
  // After the failure of a worker; `hung`: the one that hangs.
  void stop_after_failure(std::optional<LocalRank> hung, Effects& effects);
  void stop_but_survivors(std::optional<LocalRank> hung, Effects& effects);
  void on_survivors_gone(Instant now, Effects& effects);
  bool needs_worker_lease() const { return has_workers() || survivors_.exist(); }
  void on_failed_save(const WorkerExit& end, Effects& effects);
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
  control::Snapshots newest_snapshots() const;
  void send_stopped(Effects& effects);
  void become_stopped(Instant now, Effects& effects);
  void leave_job(const control::Leave& message, Finish how, Effects& effects);
  void finish(Finish finish, Effects& effects);
  void finish_job(Effects& effects);
  void give_up_joining(Effects& effects);

  AgentOptions options_;
  State state_ = State::Joining;
  CoordinatorLink link_;
  NodeLeases leases_;

  NodeFacts facts_;

  NodeRound round_;
  RoundPreparation preparation_;
  FailureReport failure_;
  Survivors survivors_;
  bool lease_killed_ = false;  // the workers of round_ got SIGKILL at the end of the lease
  JoinWait join_wait_;         // for the next round

  std::optional<control::JobResult> job_result_;
  // Bye was received. If the connection breaks while workers still end, a new one would lead to the
  // next job of that name, of which this node is no member.
  bool is_dismissed_ = false;
  bool is_finishing_ = false;  // the job is over; the agent ends when the workers are gone
  int signal_ = 0;             // the signal that ends this agent; 0: none
  Instant signalled_at_;       // when signal_ came
  Instant leave_at_;  // in Saved: the agent waits for the scan of --snapshot-dir until then
};

}  // namespace cpprun::agent

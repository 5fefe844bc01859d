// Agent: states x events of one node. Joins, starts the workers it is told to start, stops them,
// says how they ended, and knows when the run is over. Rules R1, R4, R6, R9, R13 and R16 to
// R18 of docs/protocol.md.
//
// A core: no I/O, no clock; the same calls in the same order give the same effects.
//
//   Joining --world--> Starting --worker lease--> Running --all 0, quiet--> Done --bye--> Ended
//      ^                                      | failure, stop, worker lease     | stop
//      |                                      v                          v
//      +------------- Stopped <--quiet--- Stopping                    Stopped
//   Running --SIGTERM--> Draining --quiet--> Saved --snapshots looked at--> Ended
//   Running, Stopping --other signal--> Leaving --quiet--> Ended
//   any without workers --signal--> Ended
//   any --stuck--> Ended
//
// A second SIGINT or SIGQUIT kills the workers at once. SIGTERM and SIGHUP, sent again, change
// nothing.
//
// In Starting a snapshot may have to be fetched first; there are no workers until it is here.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/core/effects.hpp"
#include "agent/core/worker_lease.hpp"
#include "common/endpoint.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

struct AgentOptions {
  control::Hello hello;     // of the first connection
  control::Register facts;  // standing, round, epoch, port and addresses apart
  std::string endpoint;     // of the job, as people write it
  Duration join_timeout{};
  Duration stop_grace{};
  bool is_led_by_election = false;  // on_led_from() says where its coordinator is (R18)
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
    Draining,  // asked to stop: the workers save and end
    Saved,     // they have ended; what they saved is being looked at
    Ended
  };

  explicit Agent(AgentOptions options) : options_(std::move(options)) {}

  // Once, before everything else.
  void start(Instant now, Effects& effects);

  // A connection to a coordinator at `peer` (numeric) stands; `addresses` are ours on it.
  void on_connected(Instant now, std::vector<std::string> addresses, const Endpoint& peer,
                    Effects& effects);
  // Nobody listens at these places, says their kernel. One where our coordinator was means that it
  // is dead (R4).
  void on_refused(Instant now, const std::vector<Endpoint>& places, Effects& effects);
  // The job is led from there, says the election (R18).
  void on_led_from(const Endpoint& place, Effects& effects);
  void on_message(Instant now, const control::CoordinatorMessage& message, Effects& effects);
  void on_disconnected(Instant now, Effects& effects);
  // The connection can't be made any more, whatever the time: the text says why.
  void on_unreachable(Instant now, const Error& error, Effects& effects);

  // This worker is known to say its steps, and has made none in this round: told before its end.
  void on_no_step(LocalRank worker) { unstepped_.insert(worker.value); }
  void on_worker_exit(Instant now, const WorkerExit& end, Effects& effects);
  // All workers are reaped, nothing of them is left, their output is written.
  void on_all_workers_gone(Instant now, Effects& effects);
  // SIGKILL did not end what is left of the workers: `what` names it. The node is unusable, and the
  // agent ends without waiting for it.
  void on_stuck(const std::string& what, Effects& effects);
  // BadValue: no restart can heal it.
  void on_start_failed(Instant now, const Error& error, Effects& effects);
  void on_port(Instant now, int64_t port, Effects& effects);
  void on_signal(Instant now, int signal, Effects& effects);
  // A worker hangs, and what could be seen of it is seen: the round ends for it. `hung` says who
  // and how (WorkerExit::hang); it lives.
  void on_hang(Instant now, const WorkerExit& hung, Effects& effects);

  // Where other nodes can fetch snapshots from here; 0: nowhere. Told with the next registration.
  void on_serving(int64_t port) { snapshot_port_ = port; }
  // Where others reach us if we lead the job one day; 0: nowhere. Told with the next registration.
  void on_control_port(int64_t port) { control_port_ = port; }
  // The newest complete snapshots here, newest first; because they were wanted, or are new.
  void on_snapshots(Instant now, std::vector<control::SnapshotName> snapshots, Effects& effects);
  // A worker could not use the snapshot that its round was to begin with, and went on from that of
  // this step (-1: none). The first one of a round counts.
  void on_fell_back(int64_t step, Effects& effects);
  void on_fetched(Instant now, Effects& effects);
  // `is_damaged`: what came is not what its manifest says, so nobody need try again.
  void on_fetch_failed(Instant now, const Error& error, bool is_damaged, Effects& effects);
  // The shards that were sought at a neighbour are here, or not to be had.
  void on_replicas_fetched(Instant now, Effects& effects);

  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const;

  State state() const { return state_; }
  const control::RankAssignment& assignment() const {
    return assignment_;
  }  // the newest; round 0: none yet
  const std::vector<control::SnapshotName>& snapshots() const { return snapshots_; }
  bool has_workers() const;
  // Its coordinator issues worker leases: there is no other to look for.
  bool is_led(Instant now) const;
  // It would lead its job; not if it is about to go.
  bool would_lead() const;
  // It may host its job where nobody listens at the job's endpoint.
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
  void on(Instant now, const control::FaultPermit& message, Effects& effects);
  void on(Instant now, const control::ShutdownRequest& message, Effects& effects);
  // For operators and their tools, not for us.
  void on(Instant, const control::AdminReply&, Effects&) {}
  void on(Instant, const control::Challenge&, Effects&) {}
  void on(Instant, const control::Watch&, Effects&) {}  // nothing to decide: the daemon tells
  void on(Instant, const control::LogTailRequest&, Effects&) {}  // likewise
  void on(Instant now, const control::Redirect& message, Effects& effects);

  bool is_stopping_past_worker_lease() const;
  bool is_past_worker_lease(Instant now) const;
  Instant node_lease_ends() const;
  bool is_leased() const { return heartbeat_ > Duration{}; }
  control::ReportedPhase reported_phase() const;
  bool has_worker_lease(Instant now) const;
  void ping(Instant now, Effects& effects);
  void ping_sooner(Instant now);
  void stop_past_worker_lease(Duration grace, Effects& effects);
  void start_if_leased(Instant now, Effects& effects);
  void drop_fetch(Effects& effects);
  void stop_workers(Duration grace, bool lets_save, Effects& effects);
  void on_failed_save(const WorkerExit& end, Effects& effects);
  bool has_saved() const;
  std::string waited_for() const;
  bool is_leaving() const {
    return state_ == State::Leaving || state_ == State::Draining || state_ == State::Saved;
  }
  bool is_failing() const;
  bool is_resumable(const WorkerExit& end) const;
  void on_request(Instant now, Effects& effects);
  void leave_at_once(Effects& effects);
  void leave(Effects& effects);
  void drain(Effects& effects);
  void leave_stopped(Instant now, Effects& effects);
  void leave_after_drain(Effects& effects);
  void flush_held_failure(Effects& effects);
  control::Snapshots newest_snapshots() const;
  void send_stopped(Effects& effects);
  std::optional<WorkerExit> own_failure() const;
  void send_stopped_if_known(Effects& effects);
  bool is_stopped_unreported() const { return wants_port_for_stopped_ || wants_scan_for_stopped_; }
  void become_stopped(Instant now, Effects& effects);
  void keep_failed_ends();
  void finish(Finish finish, Effects& effects);
  void go(Effects& effects);
  void give_up_joining(Effects& effects);
  std::string full_job(const control::Occupant& by) const;

  AgentOptions options_;
  State state_ = State::Joining;
  bool is_connected_ = false;
  bool is_spare_ = false;
  bool knows_standby_ = false;  // of another node that leads the job, now or after our coordinator
  bool wants_port_for_stopped_ = false;
  bool wants_scan_for_stopped_ = false;
  bool is_fetching_ = false;
  bool is_fetching_replicas_ = false;  // shards in memory, at a neighbour
  bool fell_back_ = false;     // the workers of assignment_ could not use what it resumes from
  bool is_drained_ = false;    // the stop of assignment_ was asked for, here or at another node
  bool is_going_ = false;      // the job is over; we go as soon as the workers have gone
  bool lease_killed_ = false;  // this round's workers got KILL because the worker lease ended
  bool ignores_connection_ =
      false;                 // to what comes on this connection: it is of an older epoch (R13)
  bool has_warned_ = false;  // of that, since the last one that was not
  control::RestartCharge charged_ = control::RestartCharge::None;  // for assignment_
  int64_t connections_ = 0;                                        // so far
  int64_t port_ = 0;
  int64_t snapshot_port_ = 0;
  int64_t control_port_ = 0;
  Endpoint peer_;               // of this connection, or the last one
  Endpoint led_by_;             // where we were welcomed last
  bool has_evidence_ = false;   // whoever welcomed us is dead
  bool is_registered_ = false;  // on this connection
  bool is_standby_ = false;     // of the round that runs, or ran last (R14)
  bool is_leading_ = false;     // we have taken the job over
  std::vector<control::SnapshotName> snapshots_;
  Term term_;
  control::RankAssignment assignment_;   // the newest; its round is the newest seen
  std::vector<WorkerExit> ends_;         // of assignment_
  std::set<int64_t> unstepped_;          // of assignment_: local ranks of workers that made no step
  std::optional<WorkerExit> hung_;       // of assignment_: why it was ended
  std::vector<WorkerExit> failed_ends_;  // of the last round that had a failure here
  std::optional<control::Failed>
      unreported_failure_;                    // a failure that may not have reached the coordinator
  std::optional<FirstFailure> held_failure_;  // may be no failure, if somebody is draining
  std::optional<control::JobResult> job_result_;
  int signal_ = 0;    // why we leave
  Instant asked_at_;  // when it came
  std::string last_wait_;
  std::string lost_;  // the node whose loss ended the last round, and how; empty: another cause

  Duration heartbeat_{};  // zero: in the coordinator's own process
  Duration lease_{};
  Instant heard_at_;  // when anything came, or the connection was made
  WorkerLease worker_lease_;
  Instant ping_at_ = Instant::never();
  Instant join_deadline_ = Instant::never();
  Instant leave_at_;  // in Saved: what lies in --snapshot-dir is not waited for any longer
};

}  // namespace cpprun::agent

// Job: the coordinator of one job. Who is in it, which round runs, who has which rank, what
// restarts are left, and how it ends. Rules R1 to R18 of docs/protocol.md; the comments in the .cpp
// name them.
//
// A core: three entry points, no I/O, no clock; the same calls in the same order give the same
// effects.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/ids.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/fault_quota.hpp"
#include "rendezvous/coordinator/leader_lease.hpp"
#include "rendezvous/coordinator/node.hpp"
#include "rendezvous/coordinator/ranking.hpp"
#include "rendezvous/coordinator/restart_budget.hpp"
#include "rendezvous/coordinator/snapshot_choice.hpp"
#include "rendezvous/coordinator/worker_lease_duration.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

struct JobOptions {
  std::string run_id;
  std::string coordinator;  // our host's name, for people
  Term term;
  std::optional<Incarnation> embedded;  // the agent in our own process
  Duration wait_reminder_interval =
      limits::kWaitReminderInterval;  // how often a wait is said again
  // A fresh secret for each round in which nodes fetch a snapshot from each other, random and from
  // outside. None: nothing is fetched.
  std::function<std::string()> make_secret{};
  // Jobs of the epochs from here up to ours were led by this process, and are over.
  Term first_term;
  // Our own agent is the standby that has seen its coordinator die (R16): the job is ours to lead,
  // and who lived in that coordinator's process is dead.
  bool is_standby = false;
  // We were elected; others may be as soon as our leader lease ends (R18).
  std::optional<LeaderLease> leader_lease{};
  // There is an admin token: whoever calls on_admin_command(), or passes an order to on_message(),
  // has checked a proof of it.
  bool needs_proof = false;
};

class Job {
 public:
  // How the connection of an agent ended.
  enum class Ending { Fin, Reset };
  // Recovering: somebody else has led the job, and its nodes tell us how far it is (R13).
  enum class Phase { Recovering, WaitingForNodes, Running, Stopping, Finishing, Ended };

  // The first agent's terms are the job's.
  Job(JobOptions options, const control::JobSpec& job_spec, Effects& effects);

  // An agent said hello and registered, on a connection whose number is newer than any it had. A
  // refusal is sent and the connection closed.
  void on_register(Instant now, SessionId session, const control::Hello& hello,
                   const control::Register& message, const SessionAddresses& facts,
                   Effects& effects);
  // Requires: `session` belongs to an agent of this job.
  void on_message(Instant now, SessionId session, const control::AgentMessage& message,
                  Effects& effects);
  void on_closed(Instant now, SessionId session, Ending how, Effects& effects);
  // The agent in the coordinator's own process has ended, and with it its workers.
  void on_host_agent_ended(Instant now, Effects& effects);
  // The port that WantStorePort asked for; 0 if none could be opened.
  void on_store_port(Instant now, int64_t port, Effects& effects);
  // What an operator wants of the job; `by` says where he is, for people. The answer is to be
  // delivered before the effects are carried out.
  control::AdminReply on_admin_command(Instant now, const control::AdminCommand& order,
                                       const std::string& by, Effects& effects);
  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const;

  bool has_session(SessionId session) const { return sessions_.contains(session); }
  // No node is left. What was decided is worth remembering for those who were cut off (R9).
  bool is_over() const { return nodes_.empty(); }
  bool has_job_result() const { return phase_ == Phase::Finishing || phase_ == Phase::Ended; }
  Term term() const { return term_; }
  const std::string& run_id() const { return options_.run_id; }
  // Orders are taken with a proof of the admin token only, here or where the job was led before.
  bool needs_proof() const { return needs_proof_; }
  // The leader lease lasts until then.
  void lead_until(Instant until) { until_ = until; }
  // It has formed no round, and goes on from none.
  bool is_new() const { return phase_ == Phase::WaitingForNodes && round_ == RoundNumber(); }
  // Ends the connections of all nodes, and forgets them.
  void disconnect_all(Effects& effects);
  // No worker of the job lives: somebody else may lead it at once.
  bool is_idle() const;
  // The node that hosts us goes, and a standby leads the job as soon as our process has ended
  // (R15).
  bool is_left_to_standby() const;
  // We have granted and formed nothing, so the job may be led from elsewhere (R17).
  bool can_be_redirected() const;
  // All nodes are told where the job is led from, and forgotten.
  void redirect_members(const control::Redirect& to, Effects& effects);

  // All were told to leave: no further round.
  bool is_shutting_down() const { return shutdown_request_.has_value(); }

  // For status pages and tests.
  Phase phase() const { return phase_; }
  RoundNumber round() const { return round_; }
  const RestartBudget& budget() const { return restart_budget_; }
  const RestartBudget& hang_restart_budget() const { return hang_restart_budget_; }
  const control::JobSpec& job_spec() const { return job_spec_; }
  int64_t admin_restarts() const { return admin_restarts_; }
  // What an operator asked for last; nothing: as many as --nnodes allows.
  std::optional<int64_t> wanted_nodes() const { return wanted_nodes_; }
  const std::map<Incarnation, Node>& nodes() const { return nodes_; }
  // Whether this node leads the job when the process that hosts us has died (R14).
  bool is_standby(const Node& node) const { return &node == standby_node(); }
  std::string why_no_round() const;  // "" while one runs
  const std::optional<control::SnapshotName>& resume() const { return resume_; }
  // The newest complete snapshot of any node.
  std::optional<control::SnapshotName> newest_snapshot() const;
  // Of the round, formed by another coordinator, that this one goes on from.
  std::optional<Term> continued_term() const { return continued_term_; }
  // Whether an agent that was welcomed last in this epoch took part in the job: the epoch is ours,
  // or older, where we go on from a coordinator that was before us, and maybe not the first.
  bool has_led(Term term) const {
    return term == term_ || (continued_term_ && term > Term() && term < term_);
  }
  // Members of round(), with what each was told.
  const std::map<Incarnation, control::RankAssignment>& assignments() const { return assignments_; }
  // Workers of round(); 0 before the first.
  int64_t world_size() const {
    return assignments_.empty() ? 0 : assignments_.begin()->second.world_size;
  }
  // Why the round stopped that stopped last; of round 0: none did.
  const control::Stop& last_stop() const { return last_stop_; }
  // What failed first in the newest round that is over and in which something failed.
  struct RoundFailure {
    RoundNumber round;
    RootCause root_cause;
  };
  const RoundFailure& last_failure() const { return last_failure_; }
  // Requires: has_job_result().
  const control::JobResult& job_result() const { return job_result_; }

 private:
  // A failure of the round that runs, or has just stopped.
  struct FailureCandidate {
    RootCause root_cause;
    Instant at;              // on its own clock
    bool has_cause = false;  // of its own: no peer's end brought it about
  };
  // The first of all nodes that share a clock, and how far that is behind ours.
  struct Clock {
    std::optional<FailureCandidate> add_failure_candidate;
    std::optional<int64_t> lag_ns;
  };

  // Joining (job.cpp).
  Status check_registration(const Node* known, const control::Hello& hello,
                            const control::Register& message) const;
  Node& add_member(Instant now, SessionId session, const control::Hello& hello,
                   const control::Register& message, const SessionAddresses& facts,
                   Effects& effects);
  void place_node(Instant now, Node& node, Effects& effects);
  bool has_missed_assignment(const Node& node) const;
  void resume(Node& node, Effects& effects);
  void send_wait(const Node& node, bool is_reminder, Effects& effects) const;

  // Going on with a job that another coordinator has led (job_recovery.cpp).
  struct Recovery {
    Instant ends_at = Instant::never();  // whoever has not registered by then is lost
    Instant host_gone_at =
        Instant::never();            // who died with the coordinator that we are standby of
    bool is_host_gone = false;       // that time has come
    bool has_evidence = false;       // whoever formed `newest` is dead
    std::set<Incarnation> heard;     // who has registered with us
    control::RankAssignment newest;  // of all rounds that nodes have told of; round 0: none
    std::set<int64_t> seen;          // group ranks of `newest` that have registered
    std::optional<control::JobResult> decided;
    bool is_proven =
        false;  // `newest` is the newest there is: somebody holds a worker lease for it
    bool is_written = false;  // it stands in the facts: the newest, and all its workers are gone
    bool must_stop = false;   // somebody's part in `newest` is over
  };
  bool is_recovering() const { return phase_ == Phase::Recovering; }
  bool is_from_other_coordinator(const std::optional<control::RankAssignment>& assignment) const;
  void restore_from_report(Instant now, const control::Register& message);
  void restore_assignment(const control::RankAssignment& assignment);
  void adopt_reported_state(Instant now, Node& node, Effects& effects);
  void on_leader_death_known(Instant now);
  void charge_reported_failure(control::RestartCharge kind);
  void end_recovery_if_due(Instant now, Effects& effects);
  void resume_job(Instant now, Effects& effects);
  bool may_lead() const;

  // Who may go on without us (job_standby.cpp).
  void forget_nodes();
  void choose_standby(const std::vector<Node*>& ranked,
                      std::vector<control::RankAssignment>& assignments);
  const Node* standby_node() const;
  bool is_standby_awaited() const;
  void place_all_nodes(Instant now, Effects& effects);
  void stop_stale_workers(const Node& node, Effects& effects) const;
  void confirm_registration(const Node& node, Effects& effects) const;

  // Leading by a leader lease (job_leader_lease.cpp).
  void restore_persisted_state(const control::PersistedJobState& facts);
  void persist(Effects& effects) const;
  Duration worker_lease(Instant now) const;
  bool has_no_live_workers(const Node& node) const;
  bool has_successor() const;

  // What members say (job.cpp).
  void on_failed(Node& node, const control::Failed& message, Effects& effects);
  void on_done(Node& node, RoundNumber round, Effects& effects);
  void on_stopped(Node& node, const control::Stopped& message, Effects& effects);
  bool is_new_damage(const control::Failed& message) const;
  void on_draining(Node& node, Effects& effects);
  void request_drain(const Node& node, Effects& effects);
  void take_snapshots(Node& node, const std::vector<control::SnapshotName>& snapshots);
  void on_ack(Node& node, Effects& effects);
  void on_fault_permit_request(const Node& node, const control::FaultPermitRequest& message,
                               Effects& effects);

  // A job that has all its nodes (job_full.cpp).
  bool is_unwanted(const Node& node) const;
  bool are_members_heard_since(const Node& newcomer) const;
  void turn_unwanted_away(Effects& effects);
  control::Occupant occupant_for(const Node& newcomer) const;

  // Admin commands (job_admin.cpp).
  void reply_to_admin_command(Instant now, const Node& asker, const control::AdminCommand& order,
                              Effects& effects);
  Result<std::string> carry_out(const control::AdminCommand& order, const std::string& by,
                                Effects& effects);
  Result<std::string> restart_all(const std::string& by, Effects& effects);
  Result<std::string> stop_all(bool saves, const std::string& by, Effects& effects);
  Result<std::string> drain_node(const std::string& name, const std::string& by, Effects& effects);
  Result<std::string> scale_to(int64_t nodes, const std::string& by, Effects& effects);
  Result<const Node*> find_node(const std::string& name) const;
  void stop_on_request(const std::string& why, Effects& effects);

  // What failed first (job_failures.cpp).
  void note_clock(Instant now, const Node& node, const control::Failed& message);
  Clock* clock_of(const Node& node);
  void add_failure_candidate(const Node& node, const WorkerExit& end, const std::string& why);
  const RootCause* first_failure() const;
  void find_root_cause();
  std::string restarts_used(bool after_hangs) const;
  control::JobResult failure() const;

  // Losses (job_losses.cpp).
  static std::string host_agent_text(const Node& node);
  void on_node_lost(Incarnation incarnation, control::StopCause cause, const std::string& why,
                    Effects& effects);
  void on_leave(const Node& node, const control::Leave& message, Effects& effects);
  int64_t nodes_left() const;
  void expire_dead_nodes(Instant now, Effects& effects);
  void expire_node_leases(Instant now, Effects& effects);

  // Rounds (job_rounds.cpp).
  void request_stop(control::StopCause cause, const std::string& why, Effects& effects);
  control::Stop stop_of_round(control::StopCause cause, const std::string& why) const;
  control::RestartCharge charged() const;
  void grow_if_due(Instant now, Effects& effects);
  void advance(Instant now, Effects& effects);
  void try_form(Instant now, Effects& effects);
  void form(Effects& effects);
  control::RankAssignment assignment_for(const Node& node, const RankRange& rank_range,
                                         const std::string& master_addr, int64_t master_port,
                                         int64_t store_port) const;
  void add_snapshots(const std::vector<Node*>& ranked,
                     std::vector<control::RankAssignment>& assignments, Effects& effects);
  void add_replicas(const std::vector<Node*>& ranked, const std::vector<bool>& are_new,
                    std::vector<control::RankAssignment>& assignments);
  bool ends_resumable() const;
  void finish_job(Effects& effects);
  void report_waiting(Instant now, Effects& effects);
  void update_ready(const Node& node);
  void send(const Node& node, control::CoordinatorMessage message, Effects& effects) const;

  bool is_member(Incarnation incarnation) const { return assignments_.contains(incarnation); }
  bool may_grow() const;
  // Nodes that a round has at most.
  int64_t most_nodes() const { return wanted_nodes_.value_or(job_spec_.max_nodes); }
  bool has_store_port() const { return job_spec_.is_store_on_main_port || store_port_.has_value(); }
  Duration heartbeat() const;
  Node* find(SessionId session);
  Instant last_call_deadline() const;
  Instant growth_deadline() const;
  Instant after_interval(std::optional<Instant> last) const;

  const JobOptions options_;
  const control::JobSpec job_spec_;
  Term term_;
  RestartBudget restart_budget_;
  RestartBudget
      hang_restart_budget_;  // of rounds that ended because a worker hung: as many, counted apart
  std::optional<Recovery> recovery_;  // Phase::Recovering
  Instant until_;                     // of our leader lease
  std::optional<Term> continued_term_;
  std::optional<control::Standby> standby_;  // of round_ (R14)
  bool is_standby_lost_ = false;             // in silence: nobody is named any more

  // Iterated where the order reaches messages, hence ordered.
  std::map<Incarnation, Node> nodes_;
  std::map<SessionId, Incarnation> sessions_;
  std::set<Incarnation> ready_;  // nodes that may take part in the next round

  Phase phase_ = Phase::WaitingForNodes;
  RoundNumber round_;  // the newest that was formed
  std::map<Incarnation, control::RankAssignment>
      assignments_;                    // members of round_, with what each was told (R1)
  std::set<Incarnation> done_;         // members that said done(round_); kept when they go
  std::set<Incarnation> pending_;      // Stopping: not yet stopped; Finishing: not yet acknowledged
  std::optional<int64_t> store_port_;  // open and unused
  bool is_port_refused_ = false;       // while a round ran, which needs none

  int64_t arrivals_ = 0;
  Instant arrived_at_;                     // the newest registration while gathering
  std::optional<Instant> min_reached_at_;  // since when min nodes are ready
  std::optional<Instant> grew_at_;         // last restart for a newcomer
  std::optional<Instant> replaced_at_;     // last restart for one who took a lost node's place
  size_t largest_round_ = 0;               // in nodes, of all so far
  Instant report_waiting_at_ = Instant::never();
  Instant next_node_expiry_ = Instant::never();  // no dead node's grace ends before
  Instant next_lease_end_ = Instant::never();    // no lease ends before

  std::optional<control::SnapshotName> resume_;  // what round_ began with
  bool is_resume_fetched_ = false;               // by some of its nodes
  std::set<std::string> damaged_;                // ids of snapshots that are fetched no more
  std::set<std::string> unusable_;               // of those that no round begins with any more
  bool is_drained_ = false;                      // round_ is stopped on request: workers save ...
  bool has_saved_ = false;        // ... and all members whose workers are gone have saved
  std::string drained_by_;        // the node that was asked to stop; empty: none, an admin command
  bool is_host_drained_ = false;  // the node that hosts us goes: no round can follow
  bool is_host_agent_ended_ = false;
  std::string
      unusable_node_;  // which node is, and why, since the last round was formed; empty: none

  bool needs_proof_ = false;
  int64_t admin_restarts_ = 0;
  std::optional<int64_t> wanted_nodes_;
  std::optional<control::ShutdownRequest>
      shutdown_request_;  // all were told to leave; who comes is told too

  FaultQuota fault_quota_;  // of the job's fault plan

  std::map<std::string, Clock> clocks_;  // of nodes where something failed in round_
  std::string startup_signature_;        // how the last round failed at start-up; empty: it did not
  int64_t same_startup_failures_ = 0;    // rounds in a row that did so in the same way
  std::optional<std::string>
      failing_;                    // failure summary: the job fails as soon as the round is over
  bool is_workers_fault_ = false;  // and that is because of a worker, not of us
  control::JobResult job_result_;

  control::Stop last_stop_;
  RoundFailure last_failure_;
};

// "rank 1 (pid 4711, on node0) exited with code 3", or why no worker ran.
std::string describe(const RootCause& root_cause);

}  // namespace cpprun

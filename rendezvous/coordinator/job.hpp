// Job: the coordinator's state machine of one job: its nodes, its rounds, and how it ends. Rules R1
// to R18 of docs/protocol.md; comments name a rule where the code enforces it.
//
// A core: no I/O, no clock, no randomness. The same calls in the same order give the same effects.
// Every entry point ends with advance(), which takes all steps that the event has made possible.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/start_totals.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/failure_record.hpp"
#include "rendezvous/coordinator/fault_quota.hpp"
#include "rendezvous/coordinator/job_options.hpp"
#include "rendezvous/coordinator/job_recovery.hpp"
#include "rendezvous/coordinator/job_state.hpp"
#include "rendezvous/coordinator/lease_tracker.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/coordinator/rank_progress.hpp"
#include "rendezvous/coordinator/result_delivery.hpp"
#include "rendezvous/coordinator/rounds/requested_stop.hpp"
#include "rendezvous/coordinator/rounds/round_formation.hpp"
#include "rendezvous/coordinator/rounds/round_stop.hpp"
#include "rendezvous/coordinator/stragglers/straggler_watch.hpp"
#include "rendezvous/coordinator/waiting_nodes.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun {

class Job {
 public:
  // How the connection of an agent ended.
  enum class Ending { Fin, Reset };
  using Phase = JobPhase;
  using RoundFailure = FailureRecord::RoundFailure;

  // The settings of the first agent are the job's.
  Job(JobOptions options, const control::JobSpec& job_spec, Effects& effects);

  // An agent registers, on a connection with a higher number than all before. A refused agent gets
  // the reason, and its connection is closed.
  void on_register(Instant now, SessionId session, const control::Hello& hello,
                   const control::Register& message, const SessionAddresses& addresses,
                   Effects& effects);
  // Requires: `session` belongs to an agent of this job.
  void on_message(Instant now, SessionId session, const control::AgentMessage& message,
                  Effects& effects);
  void on_closed(Instant now, SessionId session, Ending how, Effects& effects);
  // The agent in this process has ended, and with it its workers; as Coordinator's.
  void on_host_agent_ended(Instant now, bool is_exiting, Effects& effects);
  // The port that WantStorePort asked for; 0 if none could be opened.
  void on_store_port(Instant now, int64_t port, Effects& effects);
  // `by`: where the operator is, for people. The caller delivers the reply before it carries out
  // the effects.
  control::AdminReply on_admin_command(Instant now, const control::AdminCommand& command,
                                       const std::string& by, Effects& effects);
  void on_time(Instant now, Effects& effects);
  Instant next_deadline() const;

  bool has_session(SessionId session) const { return nodes_.has_session(session); }
  // No node is left. The result is kept for nodes that were disconnected when it was sent (R9).
  bool is_over() const { return nodes_.is_empty(); }
  bool has_job_result() const { return phase_ == Phase::Finishing || phase_ == Phase::Ended; }
  Term term() const { return state_.term; }
  const std::string& run_id() const { return options_.run_id; }
  // Admin commands need a proof of the admin token, here or where the job was led before.
  bool needs_admin_token() const { return state_.needs_admin_token; }
  // The leader lease lasts until then.
  void lead_until(Instant until) { leases_.lead_until(until); }
  // No round has formed yet, here or at a former coordinator.
  bool is_new() const { return phase_ == Phase::WaitingForNodes && round() == RoundNumber(); }
  // Closes the connections of all nodes and forgets the nodes.
  void disconnect_all(Effects& effects) { nodes_.disconnect_all(effects); }
  // No worker of the job's rounds lives: another coordinator may lead the job at once.
  bool is_idle() const {
    return phase_ == Phase::WaitingForNodes || phase_ == Phase::Finishing || phase_ == Phase::Ended;
  }
  // The node in this process leaves, no round runs, and this process serves the job by ending: its
  // standby leads the job then (R15), or a signal has asked this process to exit anyway.
  bool may_exit() const {
    if (!is_host_leaving_ || phase_ != Phase::WaitingForNodes) return false;
    const Node* standby = state_.standby.node(nodes_);
    if (options_.leader_lease) return has_successor();
    return standby != nullptr ? standby->is_connected() : is_exiting_;
  }
  // This coordinator has issued no worker lease and formed no round: the job may be led from
  // elsewhere (R17).
  bool can_be_redirected() const { return is_recovering() || is_new(); }
  // Redirects all nodes and forgets them.
  void redirect_members(const control::Redirect& to, Effects& effects) {
    nodes_.redirect_all(to, effects);
  }
  // All nodes were asked to leave: no further round forms.
  bool is_shutting_down() const { return state_.admin.shutdown_request().has_value(); }

  // For status pages and tests.
  Phase phase() const { return phase_; }
  RoundNumber round() const { return state_.round.number(); }
  const RestartBudget& budget() const { return state_.budgets.failures(); }
  const RestartBudget& hang_restart_budget() const { return state_.budgets.hangs(); }
  // nullptr: the number of lost nodes is not limited.
  const RestartBudget* node_loss_budget() const { return state_.budgets.losses(); }
  // By which the next round is delayed after the last one (--restart-backoff); zero: it is not.
  Duration restart_delay() const { return formation_.delay(); }
  const control::JobSpec& job_spec() const { return job_spec_; }
  int64_t admin_restarts() const { return state_.admin.restarts(); }
  const StartTotals& start_totals() const { return start_totals_; }
  const HostLedger& hosts() const { return state_.hosts; }
  // The last number that an operator asked for; nothing: as many as --nnodes allows.
  std::optional<int64_t> wanted_nodes() const { return state_.admin.wanted_nodes(); }
  const std::map<Incarnation, Node>& nodes() const { return nodes_.all(); }
  // Whether this client of the workers' store has an address of a node of the job.
  bool is_from_member(const SessionAddresses& connection) const {
    return nodes_.is_from_member(connection);
  }
  // Whether this node leads the job when this process has died (R14).
  bool is_standby(const Node& node) const { return &node == state_.standby.node(nodes_); }
  // For nodes that wait, and for operators.
  std::string why_no_round() const;
  std::vector<std::string> rivals() const {
    return options_.rivals ? options_.rivals() : std::vector<std::string>();
  }
  const std::optional<control::SnapshotName>& resume() const { return state_.snapshots.resume(); }
  std::optional<control::SnapshotName> newest_snapshot() const { return nodes_.newest_snapshot(); }
  // The term of the round, formed by another coordinator, from which this one continues.
  std::optional<Term> continued_term() const { return recovery_.continued_term(); }
  // Whether this agent took part in the job. A job that continues from a former coordinator may
  // have had several before.
  bool has_led(const control::Register& message) const {
    return recovery_.has_led(message, state_);
  }
  // The key that only members know. Empty: no round has formed, or is known.
  const std::string& job_key() const { return state_.job_key; }
  // Members of round(), with the rank assignment that each was sent.
  const Round::Assignments& assignments() const { return state_.round.assignments(); }
  int64_t world_size() const { return state_.round.world_size(); }
  const RankProgress& progress() const { return progress_; }
  // Ranks that compute more slowly than the others, in rank order; of a round that runs.
  std::vector<SlowRankChange> slow_ranks() const {
    const SlowRanks& ranks = stragglers_.ranks();
    const bool is_current = phase_ == Phase::Running && ranks.round() == round();
    return is_current ? ranks.slow() : std::vector<SlowRankChange>();
  }
  // Why the last stopped round stopped; of round 0: none has stopped.
  const control::Stop& last_stop() const { return stop_.last(); }
  const RoundFailure& last_failure() const { return failures_.last_failure(); }
  // Requires: has_job_result().
  const control::JobResult& job_result() const { return result_.result(); }

 private:
  // Registration.
  Node& add_node(Instant now, SessionId session, const control::Hello& hello,
                 const control::Register& message, const SessionAddresses& addresses,
                 Effects& effects);
  void confirm_registration(const Node& node, Effects& effects) const;
  void place_node(Instant now, Node& node, Effects& effects);
  // A member of the round that was disconnected when the round formed.
  bool has_missed_assignment(const Node& node) const {
    return state_.round.is_member(node.id.incarnation) && node.facts.round < round();
  }
  void readmit(Node& node, Effects& effects);
  // The node has workers of a round that this coordinator does not know, or that the other nodes
  // have left behind.
  void stop_stale_workers(const Node& node, Effects& effects) const {
    const control::StopCause cause = control::StopCause::NodeLost;
    send(node, control::Stop{node.facts.round, cause, "the job has continued without this node"},
         effects);
  }
  void send_wait(const Node& node, bool is_reminder, Effects& effects) const;

  // Messages of registered nodes.
  void on_failed(Node& node, const control::Failed& message, Effects& effects);
  void on_done(Node& node, RoundNumber round, Effects& effects);
  void on_stopped(Node& node, const control::Stopped& message, Effects& effects);
  // Keeps a report on which no decision depends. False: the message is none.
  bool take_report(Instant now, Node& node, const control::AgentMessage& message) {
    const auto* progress = std::get_if<control::Progress>(&message);
    if (progress == nullptr) return node.take_report(message);
    progress_.take(now, state_.round.assignments(), node, *progress);
    return true;
  }
  void on_compute_times(const Node& node, const control::ComputeTimes& report, Effects& effects) {
    if (phase_ != Phase::Running || is_shutting_down()) return;
    const std::string why =
        stragglers_.take({job_spec_, nodes_, state_.round, state_.hosts}, node, report, effects);
    if (why.empty()) return;
    requested_stop_.begin("");
    request_stop(control::StopCause::Exclusion, why, effects);
  }
  void on_draining(Node& node, Effects& effects);
  // A snapshot is complete only if the workers of all nodes save, so all nodes stop.
  void request_drain(const Node& node, Effects& effects) {
    if (phase_ != Phase::Running) return;
    requested_stop_.begin(node.id.name);
    request_stop(control::StopCause::Drain, node.id.name + " was asked to stop", effects);
  }
  void on_leave(const Node& node, const control::Leave& message, Effects& effects);
  void on_ack(const Node& node, Effects& effects) {
    if (phase_ == Phase::Finishing) result_.on_done(node.id.incarnation);
    if (phase_ == Phase::Ended) send(node, control::Bye{}, effects);
  }
  void reply_to_admin_command(Instant now, const Node& asker, const control::AdminCommand& command,
                              Effects& effects);

  // Lost nodes, and nodes for which there is no place.
  void on_node_lost(Incarnation incarnation, control::StopCause cause, const std::string& why,
                    Effects& effects);
  void on_lease_ended(Incarnation incarnation, Effects& effects);
  // A node is lost, or its workers are. The loss counts if it ends a round that runs (R7).
  void charge_loss(const std::string& why) {
    recovery_.note_loss();
    if (phase_ != Phase::Running || state_.budgets.charge_loss(round())) return;
    failures_.fail_job_after_loss(why + state_.budgets.losses_text());
  }
  void stop_after_loss(const std::string& why, Effects& effects) {
    charge_loss(why);
    request_stop(control::StopCause::NodeLost, why, effects);
  }
  bool is_unwanted(const Node& node) const {
    return phase_ == Phase::Running &&
           cpprun::is_unwanted(node, state_.round, job_spec_.max_nodes, nodes_, leases_);
  }
  void turn_unwanted_away(Effects& effects);

  // Recovery.
  bool is_recovering() const { return recovery_.is_open(); }
  void restore_persisted_state(const control::PersistedJobState& state);
  void resume_job(Instant now, Effects& effects);
  void place_all_nodes(Instant now, Effects& effects);

  // Excluded hosts.
  void exclude_faulty_hosts(Effects& effects);
  void warn_of_exclusion(const std::string& host, Effects& effects) const;
  void apply_exclusions(Effects& effects);
  // Members of the job keep them for the next coordinator, and the agent here in --state-dir.
  void send_records(const Node& node, Effects& effects) const {
    const bool is_trusted = node.group_rank || node.is_embedded;
    if (is_trusted && state_.hosts.is_shared()) send(node, state_.hosts.to_report(), effects);
  }
  void on_node_check(Node& node, const control::NodeCheck& check, Effects& effects);
  void count_failed_check(const Node& node, Effects& effects);

  // Rounds.
  void advance(Instant now, Effects& effects);
  void request_stop(control::StopCause cause, const std::string& why, Effects& effects);
  // With the charge of the round: its nodes keep it for the next coordinator (R13).
  control::Stop stop_of_round(control::StopCause cause, const std::string& why) const {
    return control::Stop{round(), cause, why, state_.budgets.charged(round())};
  }
  void end_round(Instant now, Effects& effects);
  RoundFormation::JobView formation_view() const;
  void grow_if_due(Instant now, Effects& effects);
  void try_form(Instant now, Effects& effects);
  void form(Effects& effects);
  void begin_round(RoundNumber number);
  void finish_job(control::JobResult result, Effects& effects);
  void fail_job(std::string why, bool is_resumable, Effects& effects) {
    finish_job(control::JobResult{false, std::move(why), is_resumable}, effects);
  }
  void report_waiting(Instant now, Effects& effects);

  bool has_too_few_ready() const { return nodes_.missing_count(job_spec_.min_nodes) > 0; }
  // Another process leads the job when this one has ended. Under a leader lease any node can.
  bool has_successor() const {
    return options_.leader_lease ? nodes_.has_candidate() : state_.standby.node(nodes_) != nullptr;
  }
  void persist(Effects& effects) const;

  const JobOptions options_;
  const control::JobSpec job_spec_;
  JobState state_;
  Phase phase_ = Phase::WaitingForNodes;

  StartTotals start_totals_;
  RankProgress progress_;
  StragglerWatch stragglers_;
  NodeTable nodes_;
  LeaseTracker leases_;
  RoundFormation formation_;
  FailureRecord failures_;
  RoundStop stop_;
  RequestedStop requested_stop_;
  ResultDelivery result_;
  FaultQuota fault_quota_;  // of the job's fault plan
  JobRecovery recovery_;    // open: Phase::Recovering

  Instant report_waiting_at_ = Instant::never();
  bool is_host_leaving_ = false;  // the node in this process goes: no round of ours can follow
  bool is_host_agent_ended_ = false;
  bool is_exiting_ = false;    // a signal has asked this process to exit
  std::string unusable_node_;  // which node is, and why, since the last round formed; empty: none
};

}  // namespace cpprun

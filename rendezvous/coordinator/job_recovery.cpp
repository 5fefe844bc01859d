// Job: going on with a job that a coordinator at the same endpoint has led before us (R13).
//
// Its memory is with the agents: each brings the newest round that it was told of. Nothing is
// formed and nothing is granted before a lease has passed: whatever the former coordinator had
// granted has ended by then. It is over sooner if all members of the newest of them are here and
// one of them still holds a worker lease for it: then there is no newer one.
#include <algorithm>
#include <utility>

#include "common/limits/election.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "rendezvous/coordinator/job.hpp"

namespace cpprun {

using control::StopCause;

namespace {

// Processes of an agent that has died are gone by then.
constexpr Duration kGone = limits::kDeathGrace / 100 * (100 + limits::kClockDriftPercent);

// Where `own`, by a clock that went back, is not greater than what an agent has seen: beyond where
// standbys count to by ones (R16), elsewhere than another start that counts on, and soon less than
// what a clock says that is right again.
Term next_term_after(Term seen, Term own) {
  constexpr int64_t kStride = 1'000;  // milliseconds
  return Term(seen.value + kStride + own.value % kStride);
}

}  // namespace

// ---------------------------------------------------------------- what agents remember

// Formed by another process. Our own rounds are not remembered but known, or over.
bool Job::is_from_other_coordinator(
    const std::optional<control::RankAssignment>& assignment) const {
  if (!assignment || assignment->term == term_) return false;
  return assignment->term < options_.first_term || assignment->term > options_.term;
}

// Before a node is taken in: what it brings may be newer than all that we know.
void Job::restore_from_report(Instant now, const control::Register& message) {
  const bool is_blank = phase_ == Phase::WaitingForNodes && round_ == RoundNumber();
  if (is_blank && (is_from_other_coordinator(message.assignment) || message.decided)) {
    phase_ = Phase::Recovering;
    recovery_.emplace(Recovery{});
    min_reached_at_.reset();
  }
  if (is_recovering() && recovery_->ends_at.is_never()) {
    const bool is_written = recovery_->is_written;
    recovery_->ends_at = now + (is_written ? limits::kLastCall : job_spec_.lease);
    if (options_.is_standby) recovery_->host_gone_at = now + kGone;
    if (is_written) recovery_->host_gone_at = now + limits::kHostLossDelay;
  }
  if (!is_recovering()) {
    // Too late for its round, but what it knows of the budgets still counts.
    if (!continued_term_ || !is_from_other_coordinator(message.assignment)) return;
    restart_budget_.learn(message.assignment->restart_count);
    hang_restart_budget_.learn(message.assignment->hang_restarts);
    return;
  }
  if (message.term > term_) term_ = next_term_after(message.term, options_.term);
  if (message.decided) recovery_->decided = message.decided;
  needs_proof_ = needs_proof_ || (message.assignment && message.assignment->needs_proof);
  if (is_from_other_coordinator(message.assignment)) restore_assignment(*message.assignment);
}

void Job::restore_assignment(const control::RankAssignment& assignment) {
  const control::RankAssignment& known = recovery_->newest;
  if (std::pair(assignment.term, assignment.round) <= std::pair(known.term, known.round)) return;
  recovery_->newest = assignment;
  recovery_->seen.clear();
  recovery_->is_proven = recovery_->is_written;
  recovery_->has_evidence = false;
  recovery_->must_stop = assignment.is_agent_store;  // its store has gone with its coordinator
  assignments_.clear();
  done_.clear();
  clocks_.clear();
  if (std::exchange(is_workers_fault_, false)) failing_.reset();
  round_ = assignment.round;
  standby_ = assignment.standby;
  restart_budget_ = RestartBudget(job_spec_.max_restarts, assignment.restart_count);
  hang_restart_budget_ = RestartBudget(job_spec_.max_restarts, assignment.hang_restarts);
  admin_restarts_ = assignment.admin_restarts;
  wanted_nodes_ = assignment.wanted_nodes;
  largest_round_ = std::max(largest_round_, static_cast<size_t>(assignment.group_size));
  resume_.reset();
  if (assignment.resume) resume_ = assignment.resume->snapshot;
  is_resume_fetched_ = !assignment.snapshot_secret.empty();
}

// A job that has a standby is led by it, or by nobody but who has heard from it: it has taken
// nothing over then, and for want of a worker lease it never will. A job that was led from
// elsewhere may still be, unless somebody has seen that coordinator dead (R13, R16).
bool Job::may_lead() const {
  if (options_.is_standby) return true;
  const control::RankAssignment& newest = recovery_->newest;
  if (newest.is_led_by_standby && !recovery_->has_evidence) return false;
  return !newest.standby || recovery_->heard.contains(newest.standby->node);
}

// The node has been taken in.
void Job::adopt_reported_state(Instant now, Node& node, Effects& effects) {
  recovery_->heard.insert(node.id.incarnation);
  const std::optional<control::RankAssignment>& assignment = node.facts.assignment;
  const control::RankAssignment& newest = recovery_->newest;
  if (assignment && assignment->term == newest.term && assignment->round == newest.round) {
    recovery_->seen.insert(assignment->group_rank);
    const bool is_witness = !newest.standby || newest.standby->node == node.id.incarnation;
    if (is_witness && node.facts.has_evidence) on_leader_death_known(now);
    assignments_.emplace(node.id.incarnation, *assignment);
    node.group_rank = assignment->group_rank;
    if (node.worker_phase == Node::WorkerPhase::Done) done_.insert(node.id.incarnation);
    if (!node.has_workers() && node.worker_phase != Node::WorkerPhase::Done)
      recovery_->must_stop = true;
    if (node.facts.has_worker_lease) recovery_->is_proven = true;
    if (node.facts.charged != control::RestartCharge::None)
      charge_reported_failure(node.facts.charged);
  }
  send_wait(node, false, effects);
}

// Who led the job elsewhere has died, maybe a moment ago: its other worker leases go on for a lease
// (I1).
void Job::on_leader_death_known(Instant now) {
  if (std::exchange(recovery_->has_evidence, true) || !recovery_->newest.is_led_by_standby) return;
  recovery_->ends_at = std::max(recovery_->ends_at, now + job_spec_.lease);
}

void Job::charge_reported_failure(control::RestartCharge kind) {
  recovery_->must_stop = true;
  const bool is_hang = kind == control::RestartCharge::Hang;
  RestartBudget& budget = is_hang ? hang_restart_budget_ : restart_budget_;
  const bool is_charged = charged() != control::RestartCharge::None;
  if (is_charged || budget.charge(round_) || failing_) return;
  is_workers_fault_ = true;
  failing_ = "a worker failed in round " + std::to_string(round_.value) + restarts_used(is_hang);
}

// ---------------------------------------------------------------- going on

void Job::end_recovery_if_due(Instant now, Effects& effects) {
  if (!may_lead()) return;
  const control::RankAssignment& newest = recovery_->newest;
  const auto there = static_cast<int64_t>(recovery_->seen.size());
  if (now >= recovery_->host_gone_at) {
    recovery_->host_gone_at = Instant::never();
    recovery_->is_host_gone = true;
  }
  const bool is_host_gone = recovery_->is_host_gone && newest.host_rank >= 0 &&
                            !recovery_->seen.contains(newest.host_rank);
  const bool is_whole = there + (is_host_gone ? 1 : 0) >= newest.group_size;
  const bool is_known = (is_whole && recovery_->is_proven) || recovery_->decided;
  if (!is_known && now < recovery_->ends_at) return;
  // Who has had no worker lease for so long has no workers.
  const bool is_worked_on = is_known && !recovery_->is_written;
  if (!is_worked_on && done_.size() < assignments_.size()) recovery_->must_stop = true;
  if (there < newest.group_size) recovery_->must_stop = true;
  resume_job(now, effects);
  grow_if_due(now, effects);
}

// What the nodes have told is all there is: from here on it is as if we had formed their round.
void Job::resume_job(Instant now, Effects& effects) {
  const Recovery known = *std::exchange(recovery_, std::nullopt);
  phase_ = round_ > RoundNumber() ? Phase::Running : Phase::WaitingForNodes;
  if (round_ > RoundNumber()) continued_term_ = known.newest.term;
  if (options_.is_standby) standby_.reset();                                     // that was us
  if (round_ > RoundNumber() && !known.newest.standby) is_standby_lost_ = true;  // perhaps
  for (auto& [incarnation, node] : nodes_) {
    node.heard_at = now;  // its lease begins
    confirm_registration(node, effects);
  }
  next_lease_end_ = now + job_spec_.lease;
  if (known.decided) {
    job_result_ = *known.decided;
    return finish_job(effects);
  }
  effects.push_back(LogEvent{
      LogEvent::Level::Info, "recovered",
      "going on with job '" + options_.run_id + "' from round " + std::to_string(round_.value) +
          ": " + std::to_string(known.seen.size()) + " of " +
          text::count(static_cast<size_t>(known.newest.group_size), "node") + " came back"});
  if (known.must_stop) {
    request_stop(StopCause::NodeLost, "its coordinator was lost, and not all of it is left",
                 effects);
  }
  place_all_nodes(now, effects);
  if (phase_ == Phase::Running && done_.size() == assignments_.size()) {  // R8
    job_result_ = control::JobResult{true, ""};
    finish_job(effects);
  }
}

// A worker lease comes after the stop: who had still to start workers of an older round would start
// them.
void Job::place_all_nodes(Instant now, Effects& effects) {
  for (const auto& [incarnation, node] : nodes_) {
    if (is_member(incarnation)) {
      if (node.is_draining()) request_drain(node, effects);
    } else if (node.has_workers() || node.worker_phase == Node::WorkerPhase::Done) {
      stop_stale_workers(node, effects);
    } else {
      send_wait(node, false, effects);
    }
  }
  for (auto& [incarnation, node] : nodes_) {
    if (!node.unanswered) continue;
    send(node, control::Pong{*std::exchange(node.unanswered, std::nullopt), worker_lease(now)},
         effects);
  }
}

// Workers of a round that this coordinator does not know, or that went on without the node.
void Job::stop_stale_workers(const Node& node, Effects& effects) const {
  send(node,
       control::Stop{node.facts.round, StopCause::NodeLost, "the job went on without this node"},
       effects);
}

}  // namespace cpprun

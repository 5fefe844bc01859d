// Job: leading a job by a leader lease, with etcd as the arbiter (R18).
//
// The key of the coordinator before us is gone, so no worker of its rounds lives: nobody need be
// waited for but those who take part again. What it has told anybody stands in its facts.
#include <algorithm>

#include "rendezvous/coordinator/job.hpp"

namespace cpprun {

void Job::restore_persisted_state(const control::PersistedJobState& facts) {
  round_ = facts.round;
  if (facts.decided) {  // who does not know yet is told
    phase_ = Phase::Ended;
    job_result_ = *facts.decided;
    continued_term_ = facts.term;
    return;
  }
  if (facts.round == RoundNumber()) return;
  phase_ = Phase::Recovering;
  recovery_.emplace(Recovery{});
  recovery_->is_written = true;
  control::RankAssignment newest;
  newest.term = facts.term;
  newest.round = facts.round;
  newest.group_size = facts.group_size;
  newest.host_rank = facts.host_rank;
  newest.is_agent_store = job_spec_.is_agent_store;
  newest.restart_count = std::min(facts.restart_count, job_spec_.max_restarts);
  newest.hang_restarts = std::min(facts.hang_restarts, job_spec_.max_restarts);
  newest.admin_restarts = facts.admin_restarts;
  if (facts.wanted_nodes) {
    newest.wanted_nodes = std::clamp(*facts.wanted_nodes, job_spec_.min_nodes, job_spec_.max_nodes);
  }
  if (facts.resume && are_sane({*facts.resume})) newest.resume.emplace().snapshot = *facts.resume;
  restore_assignment(newest);
  is_resume_fetched_ = facts.is_resume_fetched;
}

// Before anybody hears of it.
void Job::persist(Effects& effects) const {
  if (!options_.leader_lease) return;
  control::PersistedJobState facts;
  facts.term = term_;
  facts.round = round_;
  if (!assignments_
           .empty()) {  // of a round that was gone on from, maybe only of those who came back
    facts.group_size = assignments_.begin()->second.group_size;
    facts.host_rank = assignments_.begin()->second.host_rank;
  }
  facts.restart_count = restart_budget_.used();
  facts.hang_restarts = hang_restart_budget_.used();
  facts.admin_restarts = admin_restarts_;
  facts.wanted_nodes = wanted_nodes_;
  facts.resume = resume_;
  facts.is_resume_fetched = is_resume_fetched_;
  if (has_job_result()) facts.decided = job_result_;
  effects.push_back(PersistState{std::move(facts)});
}

// Another coordinator can't be in charge before every worker lease of ours has ended.
Duration Job::worker_lease(Instant now) const {
  const Duration most = worker_lease_of(job_spec_.lease);
  return options_.leader_lease ? std::clamp(until_ - now, Duration{}, most) : most;
}

// The agent in our own process ends with us; by a leader lease others may go on while we are
// frozen.
bool Job::has_no_live_workers(const Node& node) const {
  return node.is_embedded && !options_.leader_lease;
}

// Workers of our rounds can't live.
bool Job::is_idle() const {
  return phase_ == Phase::WaitingForNodes || phase_ == Phase::Finishing || phase_ == Phase::Ended;
}

// Somebody who leads the job when our process has ended. By a leader lease that is anybody.
bool Job::has_successor() const {
  if (!options_.leader_lease) return standby_node() != nullptr;
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    const Node& node = entry.second;
    return !node.is_embedded && node.liveness == Node::Liveness::Present && !node.is_draining();
  });
}

}  // namespace cpprun

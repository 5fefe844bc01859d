// Membership: leading a job by a mandate, with etcd as the arbiter (R18).
//
// The key of the coordinator before us is gone, so no worker of its rounds lives: nobody need be
// waited for but those who take part again. What it has told anybody stands in its facts.
#include <algorithm>

#include "rendezvous/coordinator/membership.hpp"

namespace cpprun {

void Membership::go_on_from(const control::JobFacts& facts) {
  round_ = facts.round;
  if (facts.decided) {  // who does not know yet is told
    phase_ = Phase::Ended;
    decision_ = *facts.decided;
    continued_epoch_ = facts.epoch;
    return;
  }
  if (facts.round == RoundNumber()) return;
  phase_ = Phase::Recovering;
  recovery_.emplace(Recovery{});
  recovery_->is_written = true;
  control::World newest;
  newest.epoch = facts.epoch;
  newest.round = facts.round;
  newest.group_size = facts.group_size;
  newest.host_rank = facts.host_rank;
  newest.is_agent_store = terms_.is_agent_store;
  newest.restart_count = std::min(facts.restart_count, terms_.max_restarts);
  newest.hang_restarts = std::min(facts.hang_restarts, terms_.max_restarts);
  newest.operator_restarts = facts.operator_restarts;
  if (facts.wanted_nodes) {
    newest.wanted_nodes = std::clamp(*facts.wanted_nodes, terms_.min_nodes, terms_.max_nodes);
  }
  if (facts.resume && are_sane({*facts.resume})) newest.resume.emplace().snapshot = *facts.resume;
  recall_world(newest);
  is_resume_fetched_ = facts.is_resume_fetched;
}

// Before anybody hears of it.
void Membership::keep(Effects& effects) const {
  if (!options_.mandate) return;
  control::JobFacts facts;
  facts.epoch = epoch_;
  facts.round = round_;
  if (!worlds_.empty()) {  // of a round that was gone on from, maybe only of those who came back
    facts.group_size = worlds_.begin()->second.group_size;
    facts.host_rank = worlds_.begin()->second.host_rank;
  }
  facts.restart_count = budget_.used();
  facts.hang_restarts = hang_budget_.used();
  facts.operator_restarts = operator_restarts_;
  facts.wanted_nodes = wanted_nodes_;
  facts.resume = resume_;
  facts.is_resume_fetched = is_resume_fetched_;
  if (is_decided()) facts.decided = decision_;
  effects.push_back(WriteFacts{std::move(facts)});
}

// Another coordinator can't be in charge before every grant of ours has ended.
Duration Membership::grant(Instant now) const {
  const Duration most = grant_of(terms_.lease);
  return options_.mandate ? std::clamp(until_ - now, Duration{}, most) : most;
}

// The agent in our own process ends with us; by a mandate others may go on while we are frozen.
bool Membership::is_free(const Node& node) const {
  return node.is_embedded && !options_.mandate;
}

// Workers of our rounds can't live.
bool Membership::is_idle() const {
  return phase_ == Phase::Gathering || phase_ == Phase::Deciding || phase_ == Phase::Ended;
}

// Somebody who leads the job when our process has ended. By a mandate that is anybody.
bool Membership::has_successor() const {
  if (!options_.mandate) return heir_node() != nullptr;
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    const Node& node = entry.second;
    return !node.is_embedded && node.life == Node::Life::Present && !node.is_draining();
  });
}

}  // namespace cpprun

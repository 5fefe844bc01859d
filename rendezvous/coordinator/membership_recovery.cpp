// Membership: going on with a job that a coordinator at the same endpoint has led before us (R13).
//
// Its memory is with the agents: each brings the newest round that it was told of. Nothing is
// formed and nothing is granted before a lease has passed: whatever the former coordinator had
// granted has ended by then. It is over sooner if all members of the newest of them are here and
// one of them still holds a grant for it: then there is no newer one.
#include <algorithm>
#include <utility>

#include "common/limits/election.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "rendezvous/coordinator/membership.hpp"

namespace cpprun {

using control::StopCause;

namespace {

// Processes of an agent that has died are gone by then.
constexpr Duration kGone = limits::kDeathGrace / 100 * (100 + limits::kClockDriftPercent);

// Where `own`, by a clock that went back, is not greater than what an agent has seen: beyond where
// heirs count to by ones (R16), elsewhere than another start that counts on, and soon less than
// what a clock says that is right again.
Epoch count_on(Epoch seen, Epoch own) {
  constexpr int64_t kStride = 1'000;  // milliseconds
  return Epoch(seen.value + kStride + own.value % kStride);
}

}  // namespace

// ---------------------------------------------------------------- what agents remember

// Formed by another process. Our own rounds are not remembered but known, or over.
bool Membership::is_foreign(const std::optional<control::World>& world) const {
  if (!world || world->epoch == epoch_) return false;
  return world->epoch < options_.first_epoch || world->epoch > options_.epoch;
}

// Before a node is taken in: what it brings may be newer than all that we know.
void Membership::recall(Instant now, const control::Register& message) {
  const bool is_blank = phase_ == Phase::Gathering && round_ == RoundNumber();
  if (is_blank && (is_foreign(message.world) || message.decided)) {
    phase_ = Phase::Recovering;
    recovery_.emplace(Recovery{});
    min_reached_at_.reset();
  }
  if (is_recovering() && recovery_->ends_at.is_never()) {
    const bool is_written = recovery_->is_written;
    recovery_->ends_at = now + (is_written ? limits::kLastCall : terms_.lease);
    if (options_.is_heir) recovery_->host_gone_at = now + kGone;
    if (is_written) recovery_->host_gone_at = now + limits::kHostMissed;
  }
  if (!is_recovering()) {
    // Too late for its round, but what it knows of the budgets still counts.
    if (!continued_epoch_ || !is_foreign(message.world)) return;
    budget_.learn(message.world->restart_count);
    hang_budget_.learn(message.world->hang_restarts);
    return;
  }
  if (message.epoch > epoch_) epoch_ = count_on(message.epoch, options_.epoch);
  if (message.decided) recovery_->decided = message.decided;
  needs_proof_ = needs_proof_ || (message.world && message.world->needs_proof);
  if (is_foreign(message.world)) recall_world(*message.world);
}

void Membership::recall_world(const control::World& world) {
  const control::World& known = recovery_->newest;
  if (std::pair(world.epoch, world.round) <= std::pair(known.epoch, known.round)) return;
  recovery_->newest = world;
  recovery_->seen.clear();
  recovery_->is_proven = recovery_->is_written;
  recovery_->has_evidence = false;
  recovery_->must_stop = world.is_agent_store;  // its store has gone with its coordinator
  worlds_.clear();
  done_.clear();
  clocks_.clear();
  if (std::exchange(is_workers_fault_, false)) failing_.reset();
  round_ = world.round;
  heir_ = world.heir;
  budget_ = Budget(terms_.max_restarts, world.restart_count);
  hang_budget_ = Budget(terms_.max_restarts, world.hang_restarts);
  operator_restarts_ = world.operator_restarts;
  wanted_nodes_ = world.wanted_nodes;
  largest_round_ = std::max(largest_round_, static_cast<size_t>(world.group_size));
  resume_.reset();
  if (world.resume) resume_ = world.resume->snapshot;
  is_resume_fetched_ = !world.snapshot_secret.empty();
}

// A job that has an heir is led by it, or by nobody but who has heard from it: it has taken nothing
// over then, and for want of a grant it never will. A job that was led from elsewhere may still be,
// unless somebody has seen that coordinator dead (R13, R16).
bool Membership::may_lead() const {
  if (options_.is_heir) return true;
  const control::World& newest = recovery_->newest;
  if (newest.is_moved && !recovery_->has_evidence) return false;
  return !newest.heir || recovery_->heard.contains(newest.heir->node);
}

// The node has been taken in.
void Membership::take_in_memory(Instant now, Node& node, Effects& effects) {
  recovery_->heard.insert(node.id.incarnation);
  const std::optional<control::World>& world = node.facts.world;
  const control::World& newest = recovery_->newest;
  if (world && world->epoch == newest.epoch && world->round == newest.round) {
    recovery_->seen.insert(world->group_rank);
    const bool is_witness = !newest.heir || newest.heir->node == node.id.incarnation;
    if (is_witness && node.facts.has_evidence) learn_of_death(now);
    worlds_.emplace(node.id.incarnation, *world);
    node.group_rank = world->group_rank;
    if (node.work == Node::Work::Done) done_.insert(node.id.incarnation);
    if (!node.has_workers() && node.work != Node::Work::Done) recovery_->must_stop = true;
    if (node.facts.has_grant) recovery_->is_proven = true;
    if (node.facts.charged != control::Charge::None) charge_known_failure(node.facts.charged);
  }
  say_wait(node, false, effects);
}

// Who led the job elsewhere has died, maybe a moment ago: its other grants go on for a lease (I1).
void Membership::learn_of_death(Instant now) {
  if (std::exchange(recovery_->has_evidence, true) || !recovery_->newest.is_moved) return;
  recovery_->ends_at = std::max(recovery_->ends_at, now + terms_.lease);
}

void Membership::charge_known_failure(control::Charge kind) {
  recovery_->must_stop = true;
  const bool is_hang = kind == control::Charge::Hang;
  Budget& budget = is_hang ? hang_budget_ : budget_;
  const bool is_charged = charged() != control::Charge::None;
  if (is_charged || budget.charge(round_) || failing_) return;
  is_workers_fault_ = true;
  failing_ = "a worker failed in round " + std::to_string(round_.value) + restarts_used(is_hang);
}

// ---------------------------------------------------------------- going on

void Membership::end_recovery_if_due(Instant now, Effects& effects) {
  if (!may_lead()) return;
  const control::World& newest = recovery_->newest;
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
  // Who has had no grant for so long has no workers.
  const bool is_worked_on = is_known && !recovery_->is_written;
  if (!is_worked_on && done_.size() < worlds_.size()) recovery_->must_stop = true;
  if (there < newest.group_size) recovery_->must_stop = true;
  go_on(now, effects);
  grow_if_due(now, effects);
}

// What the nodes have told is all there is: from here on it is as if we had formed their round.
void Membership::go_on(Instant now, Effects& effects) {
  const Recovery known = *std::exchange(recovery_, std::nullopt);
  phase_ = round_ > RoundNumber() ? Phase::Running : Phase::Gathering;
  if (round_ > RoundNumber()) continued_epoch_ = known.newest.epoch;
  if (options_.is_heir) heir_.reset();                                     // that was us
  if (round_ > RoundNumber() && !known.newest.heir) is_heir_lost_ = true;  // perhaps
  for (auto& [incarnation, node] : nodes_) {
    node.heard_at = now;  // its lease begins
    welcome(node, effects);
  }
  next_lease_end_ = now + terms_.lease;
  if (known.decided) {
    decision_ = *known.decided;
    return decide(effects);
  }
  effects.push_back(
      Note{Note::Level::Info, "recovered",
           "going on with job '" + options_.run_id + "' from round " +
               std::to_string(round_.value) + ": " + std::to_string(known.seen.size()) + " of " +
               text::count(static_cast<size_t>(known.newest.group_size), "node") + " came back"});
  if (known.must_stop) {
    request_stop(StopCause::NodeLost, "its coordinator was lost, and not all of it is left",
                 effects);
  }
  place_all(now, effects);
  if (phase_ == Phase::Running && done_.size() == worlds_.size()) {  // R8
    decision_ = control::Decided{true, ""};
    decide(effects);
  }
}

// A grant comes after the stop: who had still to start workers of an older round would start them.
void Membership::place_all(Instant now, Effects& effects) {
  for (const auto& [incarnation, node] : nodes_) {
    if (is_member(incarnation)) {
      if (node.is_draining()) request_drain(node, effects);
    } else if (node.has_workers() || node.work == Node::Work::Done) {
      stop_left_over(node, effects);
    } else {
      say_wait(node, false, effects);
    }
  }
  for (auto& [incarnation, node] : nodes_) {
    if (!node.unanswered) continue;
    send(node, control::Pong{*std::exchange(node.unanswered, std::nullopt), grant(now)}, effects);
  }
}

// Workers of a round that this coordinator does not know, or that went on without the node.
void Membership::stop_left_over(const Node& node, Effects& effects) const {
  send(node,
       control::Stop{node.facts.round, StopCause::NodeLost, "the job went on without this node"},
       effects);
}

}  // namespace cpprun

#include "common/faults/schedule.hpp"

#include <algorithm>

#include "common/faults/draw.hpp"

namespace cpprun::faults {
namespace {

bool fits(const std::optional<Span>& wanted, int64_t number) {
  return !wanted || wanted->from == number;
}

bool names_round(const Fault& fault) { return fault.round || fault.attempt; }

}  // namespace

Schedule::Schedule(const Plan& plan) : plan_(plan) {
  for (size_t i = 0; i < plan_.faults.size(); ++i) {
    if (!plan_.faults[i].is_at_place()) timed_.push_back({i, &plan_.faults[i]});
  }
}

// Sets the time of the first injection. A fault that names a round counts from the start of that
// round; other faults count from the start of the first round.
void Schedule::set(Timed& timed, Instant now) const {
  const Fault& fault = *timed.fault;
  const bool is_here = fits(fault.round, here_->round) && fits(fault.attempt, here_->attempt);
  if (timed.injected >= fault.times || (names_round(fault) ? !is_here : has_begun_)) {
    if (names_round(fault)) timed.at = Instant::never();
    return;
  }
  timed.at = now + (fault.every ? gap(plan_.seed, timed.index, 0, *fault.every)
                                : Duration(fault.after_ns ? fault.after_ns->from : 0));
}

void Schedule::on_started(Instant now, const Placement& here) {
  here_ = here;
  for (Timed& timed : timed_) set(timed, now);
  has_begun_ = true;
}

Instant Schedule::next_deadline() const {
  Instant next = Instant::never();
  if (!here_) return next;
  for (const Timed& timed : timed_) next = std::min(next, timed.at);
  return next;
}

std::vector<DueFault> Schedule::take_due(Instant now) {
  std::vector<DueFault> all;
  if (!here_) return all;
  for (Timed& timed : timed_) {
    if (timed.at > now) continue;
    if (const std::optional<DueFault> due = target(timed)) all.push_back(*due);
    ++timed.injected;
    const Fault& fault = *timed.fault;
    const bool repeats = fault.every && timed.injected < fault.times;
    timed.at = repeats ? now + gap(plan_.seed, timed.index, timed.injected, *fault.every)
                       : Instant::never();
  }
  return all;
}

std::optional<DueFault> Schedule::target(const Timed& timed) const {
  const Fault& fault = *timed.fault;
  const uint64_t draw = victim(plan_.seed, timed.index, timed.injected);
  if (fault.node || (fault.is_of_agent() && !fault.rank)) {
    const TargetSelector any{fault.node ? fault.node->number : std::nullopt, draw};
    if (any.among(here_->nodes) != here_->node) return std::nullopt;
    return DueFault{timed.index, std::nullopt};
  }
  const TargetSelector any{fault.rank ? fault.rank->number : std::nullopt, draw};
  const int64_t rank = any.among(here_->ranks);
  if (rank < here_->base_rank || rank >= here_->base_rank + here_->workers) return std::nullopt;
  return DueFault{timed.index, fault.is_of_agent() ? std::nullopt : std::optional(rank)};
}

}  // namespace cpprun::faults

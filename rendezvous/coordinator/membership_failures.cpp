// Membership: which failure of a round came first, on all nodes, and start-up failures in a row.
#include <algorithm>
#include <tuple>

#include "common/failure/failure_class.hpp"
#include "common/limits/rendezvous.hpp"
#include "rendezvous/coordinator/membership.hpp"

namespace cpprun {
namespace {

// Numbers of other nodes may be anything; sums of clipped ones fit.
int64_t clipped(int64_t ns) {
  constexpr int64_t kMost = INT64_MAX / 4;
  return std::clamp(ns, -kMost, kMost);
}

}  // namespace

// A message took its time, so the least of all differences is the best: what is left of an error is
// the quickest way that a message took. Only of this round: over days clocks drift apart.
void Membership::note_clock(Instant now, const Node& node, const control::Failed& message) {
  Clock* clock = clock_of(node);
  if (clock == nullptr || message.sent_at == Instant{}) return;
  const int64_t lag = clipped(now.nanoseconds()) - clipped(message.sent_at.nanoseconds());
  clock->lag_ns = std::min(clock->lag_ns.value_or(lag), lag);
}

// nullptr: so many have failed that one more changes nothing.
Membership::Clock* Membership::clock_of(const Node& node) {
  const std::string& said = node.facts.clock_id;
  const std::string id = said.empty() ? std::to_string(node.id.incarnation.value) : said;
  const bool is_room = clocks_.contains(id) || clocks_.size() < limits::kFailureClocks;
  return is_room ? &clocks_[id] : nullptr;
}

// Of those on one clock the one that came first is kept. Who only tells of a peer's end yields to
// who knows a cause.
void Membership::suspect(const Node& node, const WorkerEnd& end, const std::string& why) {
  Clock* clock = clock_of(node);
  if (clock == nullptr) return;
  Suspect fresh{Culprit{node.id.name, end, why}, happened_at(end),
                !why.empty() || has_own_cause(end)};
  const std::optional<Suspect>& known = clock->suspect;
  const bool is_first =
      !known || (fresh.has_cause != known->has_cause ? fresh.has_cause : fresh.at < known->at);
  if (is_first) clock->suspect = std::move(fresh);
}

// Over all clocks. One whose lag nobody knows can't be compared, and yields.
const Culprit* Membership::first_failure() const {
  using Order = std::tuple<bool, bool, int64_t>;
  const Suspect* first = nullptr;
  Order least;
  for (const auto& [id, clock] : clocks_) {
    if (!clock.suspect) continue;
    const int64_t at = clipped(clock.suspect->at.nanoseconds()) + clock.lag_ns.value_or(0);
    const Order order{!clock.suspect->has_cause, !clock.lag_ns, at};
    if (first != nullptr && order >= least) continue;
    first = &*clock.suspect;
    least = order;
  }
  return first == nullptr ? nullptr : &first->culprit;
}

std::string Membership::restarts_used(bool after_hangs) const {
  const Budget& budget = after_hangs ? hang_budget_ : budget_;
  return std::string("; restarts used") + (after_hangs ? " after hangs: " : ": ") +
         std::to_string(budget.used()) + " of " + std::to_string(budget.max());
}

// The round is over and all have said what failed.
void Membership::judge() {
  const Culprit* culprit = first_failure();
  if (culprit == nullptr) {
    same_start_ups_ = 0;
    return;
  }
  last_failure_ = {round_, *culprit};
  const bool is_start_up = culprit->why.empty() && is_start_up_failure(culprit->end);
  const std::string signature = is_start_up ? signature_of(culprit->end) : "";
  const bool is_same = is_start_up && signature == start_up_signature_;
  same_start_ups_ = is_same ? same_start_ups_ + 1 : is_start_up ? 1 : 0;
  start_up_signature_ = signature;
  const int64_t most = terms_.startup_failures;
  const bool is_hopeless = most > 0 && same_start_ups_ >= most && !failing_;
  is_workers_fault_ = is_workers_fault_ || is_hopeless;
  if (is_workers_fault_) {
    failing_ = describe(*culprit) + restarts_used(culprit->end.is_hang());
  }
  if (is_hopeless) {
    *failing_ += "; it failed at start-up in the same way " + std::to_string(same_start_ups_) +
                 " times in a row (--startup-failures)";
  }
}

control::Decided Membership::failure() const {
  control::Decided decided{false, *failing_};
  const Culprit* culprit = first_failure();
  if (culprit == nullptr || !is_workers_fault_) return decided;
  decided.culprit = *culprit;
  decided.same_start_ups = same_start_ups_;
  decided.world_size = world_size();
  return decided;
}

std::string describe(const Culprit& culprit) {
  if (!culprit.why.empty()) return culprit.why;
  return "rank " + std::to_string(culprit.end.rank.value) + " (pid " +
         std::to_string(culprit.end.pid) + ", on " + culprit.node + ") " +
         describe_end(culprit.end);
}

}  // namespace cpprun

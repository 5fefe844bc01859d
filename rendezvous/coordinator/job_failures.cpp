// Job: which failure of a round came first, on all nodes, and start-up failures in a row.
#include <algorithm>
#include <tuple>

#include "common/failure/failure_class.hpp"
#include "common/limits/rendezvous.hpp"
#include "rendezvous/coordinator/job.hpp"

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
void Job::note_clock(Instant now, const Node& node, const control::Failed& message) {
  Clock* clock = clock_of(node);
  if (clock == nullptr || message.sent_at == Instant{}) return;
  const int64_t lag = clipped(now.nanoseconds()) - clipped(message.sent_at.nanoseconds());
  clock->lag_ns = std::min(clock->lag_ns.value_or(lag), lag);
}

// nullptr: so many have failed that one more changes nothing.
Job::Clock* Job::clock_of(const Node& node) {
  const std::string& said = node.facts.clock_domain;
  const std::string id = said.empty() ? std::to_string(node.id.incarnation.value) : said;
  const bool is_room = clocks_.contains(id) || clocks_.size() < limits::kFailureClocks;
  return is_room ? &clocks_[id] : nullptr;
}

// Of those on one clock the one that came first is kept. Who only tells of a peer's end yields to
// who knows a cause.
void Job::add_failure_candidate(const Node& node, const WorkerExit& end, const std::string& why) {
  Clock* clock = clock_of(node);
  if (clock == nullptr) return;
  FailureCandidate fresh{RootCause{node.id.name, end, why}, happened_at(end),
                         !why.empty() || has_own_cause(end)};
  const std::optional<FailureCandidate>& known = clock->add_failure_candidate;
  const bool is_first =
      !known || (fresh.has_cause != known->has_cause ? fresh.has_cause : fresh.at < known->at);
  if (is_first) clock->add_failure_candidate = std::move(fresh);
}

// Over all clocks. One whose lag nobody knows can't be compared, and yields.
const RootCause* Job::first_failure() const {
  using Order = std::tuple<bool, bool, int64_t>;
  const FailureCandidate* first = nullptr;
  Order least;
  for (const auto& [id, clock] : clocks_) {
    if (!clock.add_failure_candidate) continue;
    const int64_t at =
        clipped(clock.add_failure_candidate->at.nanoseconds()) + clock.lag_ns.value_or(0);
    const Order order{!clock.add_failure_candidate->has_cause, !clock.lag_ns, at};
    if (first != nullptr && order >= least) continue;
    first = &*clock.add_failure_candidate;
    least = order;
  }
  return first == nullptr ? nullptr : &first->root_cause;
}

std::string Job::restarts_used(bool after_hangs) const {
  const RestartBudget& budget = after_hangs ? hang_restart_budget_ : restart_budget_;
  return std::string("; restarts used") + (after_hangs ? " after hangs: " : ": ") +
         std::to_string(budget.used()) + " of " + std::to_string(budget.max());
}

// The round is over and all have said what failed.
void Job::find_root_cause() {
  const RootCause* root_cause = first_failure();
  if (root_cause == nullptr) {
    same_startup_failures_ = 0;
    return;
  }
  last_failure_ = {round_, *root_cause};
  const bool is_start_up = root_cause->why.empty() && is_startup_failure(root_cause->end);
  const std::string signature = is_start_up ? signature_of(root_cause->end) : "";
  const bool is_same = is_start_up && signature == startup_signature_;
  same_startup_failures_ = is_same ? same_startup_failures_ + 1 : is_start_up ? 1 : 0;
  startup_signature_ = signature;
  const int64_t most = job_spec_.startup_failures;
  const bool is_hopeless = most > 0 && same_startup_failures_ >= most && !failing_;
  is_workers_fault_ = is_workers_fault_ || is_hopeless;
  if (is_workers_fault_) {
    failing_ = describe(*root_cause) + restarts_used(root_cause->end.is_hang());
  }
  if (is_hopeless) {
    *failing_ += "; it failed at start-up in the same way " +
                 std::to_string(same_startup_failures_) + " times in a row (--startup-failures)";
  }
}

control::JobResult Job::failure() const {
  control::JobResult decided{false, *failing_};
  const RootCause* root_cause = first_failure();
  if (root_cause == nullptr || !is_workers_fault_) return decided;
  decided.root_cause = *root_cause;
  decided.same_startup_failures = same_startup_failures_;
  decided.world_size = world_size();
  return decided;
}

std::string describe(const RootCause& root_cause) {
  if (!root_cause.why.empty()) return root_cause.why;
  return "rank " + std::to_string(root_cause.end.rank.value) + " (pid " +
         std::to_string(root_cause.end.pid) + ", on " + root_cause.node + ") " +
         describe_end(root_cause.end);
}

}  // namespace cpprun

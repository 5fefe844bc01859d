#include "rendezvous/coordinator/failure_record.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/failure/failure_class.hpp"
#include "common/limits/rendezvous.hpp"

namespace cpprun {
namespace {

// Times of other nodes may be any number; the sum of two clipped ones does not overflow.
int64_t clipped(int64_t ns) {
  constexpr int64_t kMost = INT64_MAX / 4;
  return std::clamp(ns, -kMost, kMost);
}

}  // namespace

RootCause FailureRecord::root_cause_of(const Node& node, const control::Failed& message) {
  std::string why;  // no worker ran
  if (message.is_fatal) {
    why = "a worker could not be started on " + node.id.name +
          (message.why.empty() ? "" : ": " + message.why);
  } else if (!message.why.empty()) {
    why = message.why + ", reported by " + node.id.name;
  }
  return RootCause{node.id.name, message.end, why};
}

void FailureRecord::restart() {
  forget_failures_of_workers();
  failure_summary_.reset();
}

void FailureRecord::forget_failures_of_workers() {
  clocks_.clear();
  if (std::exchange(is_workers_fault_, false)) failure_summary_.reset();
}

// Every message is under way for some time, so the smallest difference is the most exact: its error
// is the time of the quickest message. Only of this round: clocks drift apart over days.
void FailureRecord::note_clock(Instant now, const Node& node, const control::Failed& message) {
  Clock* clock = clock_of(node);
  if (clock == nullptr || message.sent_at == Instant{}) return;
  const int64_t lag = clipped(now.nanoseconds()) - clipped(message.sent_at.nanoseconds());
  clock->lag_ns = std::min(clock->lag_ns.value_or(lag), lag);
}

// nullptr: so many nodes have failed that one more changes nothing.
FailureRecord::Clock* FailureRecord::clock_of(const Node& node) {
  const std::string& domain = node.facts.clock_domain;
  const std::string id = domain.empty() ? std::to_string(node.id.incarnation.value) : domain;
  const bool has_space = clocks_.contains(id) || clocks_.size() < limits::kFailureClocks;
  return has_space ? &clocks_[id] : nullptr;
}

// Keeps the first failure of each clock. A worker that only reports the end of a peer yields to one
// that knows a cause.
void FailureRecord::add(const Node& node, const WorkerExit& end, const std::string& why) {
  Clock* clock = clock_of(node);
  if (clock == nullptr) return;
  Candidate fresh{RootCause{node.id.name, end, why}, happened_at(end),
                  !why.empty() || has_own_cause(end)};
  const std::optional<Candidate>& known = clock->first;
  const bool is_first =
      !known || (fresh.has_cause != known->has_cause ? fresh.has_cause : fresh.at < known->at);
  if (is_first) clock->first = std::move(fresh);
}

void FailureRecord::fail_job(const std::string& summary) {
  if (failure_summary_) return;
  is_workers_fault_ = true;
  failure_summary_ = summary;
}

void FailureRecord::charge_as_reported(RoundNumber round, control::RestartCharge charged,
                                       RestartBudgets& budgets) {
  const std::string where = "in round " + std::to_string(round.value);
  const bool is_hang = charged == control::RestartCharge::Hang;
  if (charged == control::RestartCharge::NodeLoss) {
    if (budgets.charge_loss(round)) return;
    fail_job_after_loss("a node was lost " + where + budgets.losses_text());
  } else if (!budgets.charge(round, is_hang)) {
    fail_job("a worker failed " + where + budgets.used_text(is_hang));
  }
}

// A failure on a clock of unknown lag can't be compared, and yields.
const RootCause* FailureRecord::root_cause() const {
  using Order = std::tuple<bool, bool, int64_t>;
  const Candidate* first = nullptr;
  Order least;
  for (const auto& [id, clock] : clocks_) {
    if (!clock.first) continue;
    const int64_t at = clipped(clock.first->at.nanoseconds()) + clock.lag_ns.value_or(0);
    const Order order{!clock.first->has_cause, !clock.lag_ns, at};
    if (first != nullptr && order >= least) continue;
    first = &*clock.first;
    least = order;
  }
  return first == nullptr ? nullptr : &first->root_cause;
}

void FailureRecord::pardon(RoundNumber round) {
  if (const RootCause* first = root_cause(); first != nullptr) last_failure_ = {round, *first};
  forget_failures_of_workers();
}

void FailureRecord::count_startup_failure(const RootCause& cause) {
  const bool is_start_up = cause.why.empty() && is_startup_failure(cause.end);
  const std::string signature = is_start_up ? signature_of(cause.end) : "";
  const bool is_same = is_start_up && signature == startup_signature_;
  same_startup_failures_ = is_same ? same_startup_failures_ + 1 : is_start_up ? 1 : 0;
  startup_signature_ = signature;
}

void FailureRecord::end_round(RoundNumber round, const RestartBudgets& budgets,
                              const JobProgress& made, control::PastFailures& past) {
  const RootCause* first = root_cause();
  if (first == nullptr) {
    same_startup_failures_ = 0;
    return note_progress(made, past);
  }
  last_failure_ = {round, *first};
  count_startup_failure(*first);
  const std::string why = note_failure(*first, made, past);
  same_failures_ = past.repeats;
  if (stops_on_repeat_) why_no_retry_ = why;
  const bool is_hopeless = max_startup_failures_ > 0 &&
                           same_startup_failures_ >= max_startup_failures_ && !failure_summary_;
  is_workers_fault_ = is_workers_fault_ || is_hopeless || !why_no_retry_.empty();
  if (!is_workers_fault_) return;
  failure_summary_ = describe(*first) + budgets.used_text(first->end.is_hang());
  if (is_hopeless) {
    *failure_summary_ += "; it failed at start-up in the same way " +
                         std::to_string(same_startup_failures_) +
                         " times in a row (--startup-failures)";
  }
  if (!why_no_retry_.empty()) *failure_summary_ += "; " + why_no_retry_ + " (--on-repeat=stop)";
}

control::JobResult FailureRecord::job_result(int64_t world_size) const {
  control::JobResult result{false, *failure_summary_};
  const RootCause* first = root_cause();
  if (first == nullptr || !is_workers_fault_) return result;
  result.root_cause = *first;
  result.same_startup_failures = same_startup_failures_;
  result.same_failures = same_failures_;
  result.why_no_retry = why_no_retry_;
  result.world_size = world_size;
  return result;
}

std::string describe(const RootCause& root_cause) {
  if (!root_cause.why.empty()) return root_cause.why;
  return "rank " + std::to_string(root_cause.end.rank.value) + " (pid " +
         std::to_string(root_cause.end.pid) + ", on " + root_cause.node + ") " +
         describe_end(root_cause.end);
}

}  // namespace cpprun

#include "agent/daemon/services/compute_reporter.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/limits/dashboard.hpp"
#include "common/limits/stragglers.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {

std::optional<control::ComputeTimes> compute_times_of(
    RoundNumber round, const std::vector<std::optional<Heartbeat>>& workers,
    std::vector<ComputeSum>& last) {
  using std::chrono::microseconds;
  control::ComputeTimes times{round, {}, {}};
  const size_t count = std::min(workers.size(), limits::kProgressWorkers);
  last.resize(count);
  times.steps.resize(count, 0);
  times.compute_us.resize(count, 0);
  bool is_any = false;
  for (size_t i = 0; i < count; ++i) {
    if (!workers[i]) continue;
    const ComputeSum now{workers[i]->computed, workers[i]->computed_steps};
    const int64_t steps = now.steps - last[i].steps;
    const Duration computed = now.computed - last[i].computed;
    if (steps == 0) continue;
    last[i] = now;
    if (steps < 0 || computed < Duration{}) continue;  // the sums of another process
    times.steps[i] = steps;
    times.compute_us[i] = std::chrono::duration_cast<microseconds>(computed).count() / steps;
    is_any = true;
  }
  return is_any ? std::optional(std::move(times)) : std::nullopt;
}

void ComputeReporter::on_stepped() {
  if (timer_.at().is_never()) timer_.set(boot_now() + limits::kComputeTimesInterval);
}

void ComputeReporter::on_round_ended() {
  last_.clear();
  timer_.set(Instant::never());
}

void ComputeReporter::report() {
  const auto times = compute_times_of(callbacks_.round(), callbacks_.heartbeats(), last_);
  if (times && is_wanted_) callbacks_.send(*times);
  const auto has_steps = [](const ComputeSum& sum) { return sum.steps > 0; };
  const bool has_reported = std::ranges::any_of(last_, has_steps);
  timer_.set(boot_now() +
             (has_reported ? limits::kComputeTimesInterval : limits::kComputeTimesAwaited));
}

}  // namespace cpprun

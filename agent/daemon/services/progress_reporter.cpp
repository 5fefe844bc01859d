#include "agent/daemon/services/progress_reporter.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/limits/dashboard.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {

std::optional<control::Progress> progress_of(RoundNumber round,
                                             const std::vector<std::optional<Heartbeat>>& workers) {
  control::Progress progress;
  progress.round = round;
  const size_t count = std::min(workers.size(), limits::kProgressWorkers);
  for (size_t place = 0; place < count; ++place) {
    if (!workers[place]) continue;
    progress.steps.resize(place + 1, -1);
    progress.step_us.resize(place + 1, -1);
    using std::chrono::duration_cast;
    const Duration takes = workers[place]->step_takes;
    progress.steps[place] = workers[place]->step;
    if (takes <= Duration{}) continue;
    progress.step_us[place] = duration_cast<std::chrono::microseconds>(takes).count();
  }
  return progress.steps.empty() ? std::nullopt : std::optional(std::move(progress));
}

ProgressReporter::ProgressReporter(boost::asio::io_context& loop, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), timer_(loop, [this] { report(); }) {}

void ProgressReporter::on_watch(const control::Watch& watch) {
  watched_until_ = boot_now() + std::clamp(watch.lasts, Duration{}, limits::kWatchDuration);
  if (watch.lasts <= Duration{}) return on_disconnected();
  if (!is_ticking_) report();
}

void ProgressReporter::on_disconnected() {
  watched_until_ = Instant{};
  last_sent_.reset();
  is_ticking_ = false;
  timer_.set(Instant::never());
}

// Sends a report only if it differs from the last one, at most once per limits::kProgressEvery.
void ProgressReporter::report() {
  is_ticking_ = boot_now() < watched_until_;
  if (!is_ticking_) return last_sent_.reset();
  send_if_new();
  timer_.set(boot_now() + limits::kProgressEvery);
}

void ProgressReporter::send_if_new() {
  std::optional<control::Progress> now = progress_of(callbacks_.round(), callbacks_.heartbeats());
  if (!now || now == last_sent_) return;
  callbacks_.send(*now);
  last_sent_ = std::move(now);
}

}  // namespace cpprun

#include "agent/daemon/services/progress_reporter.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/limits/dashboard.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {

std::optional<control::Progress> progress_of(RoundNumber round,
                                             const std::vector<LiveWorker>& workers) {
  control::Progress progress;
  progress.round = round;
  bool is_any = false;
  for (const LiveWorker& worker : workers) {
    const auto place = static_cast<size_t>(worker.local_rank.value);
    if (place >= limits::kProgressWorkers || !worker.heartbeat) continue;
    is_any = true;
    if (progress.steps.size() <= place) {
      progress.steps.resize(place + 1, -1);
      progress.step_us.resize(place + 1, -1);
    }
    using std::chrono::duration_cast;
    const Duration takes = worker.heartbeat->step_takes;
    progress.steps[place] = worker.heartbeat->step;
    if (takes <= Duration{}) continue;
    progress.step_us[place] = duration_cast<std::chrono::microseconds>(takes).count();
  }
  return is_any ? std::optional(std::move(progress)) : std::nullopt;
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
  std::optional<control::Progress> now = progress_of(callbacks_.round(), callbacks_.live());
  if (now && now != last_sent_) {
    callbacks_.send(*now);
    last_sent_ = std::move(now);
  }
  timer_.set(boot_now() + limits::kProgressEvery);
}

}  // namespace cpprun

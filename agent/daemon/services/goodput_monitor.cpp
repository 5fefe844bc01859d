#include "agent/daemon/services/goodput_monitor.hpp"

#include <algorithm>
#include <utility>

#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {
GoodputMonitor::GoodputMonitor(boost::asio::io_context& loop, GoodputAccount& account,
                               Callbacks callbacks)
    : account_(account), callbacks_(std::move(callbacks)), timer_(loop, [this] { tick(); }) {}

void GoodputMonitor::on_beat(const Heartbeat& heartbeat) {
  const bool is_saving = heartbeat.phase == kSavingPhase;
  const Duration saved = heartbeat.saved + (is_saving ? heartbeat.age : Duration{});
  const Instant now = boot_now();
  account_.beat(is_saving ? now : now - heartbeat.age, heartbeat.step, saved);
}

// The worker that is furthest ahead stands for the node; of several, the first.
void GoodputMonitor::sample() {
  const std::vector<LiveWorker> workers = callbacks_.live();
  const auto step_of = [](const LiveWorker& worker) {
    return worker.heartbeat ? worker.heartbeat->step : INT64_MIN;
  };
  const auto first = std::ranges::max_element(workers, {}, step_of);
  if (first != workers.end() && first->heartbeat) on_beat(*first->heartbeat);
}

void GoodputMonitor::on_stepped() {
  if (std::exchange(is_ticking_, true)) return;
  report();
  tick();
}

void GoodputMonitor::tick() {
  if (!account_.is_running()) return;
  sample();
  const Instant now = boot_now();
  if (now - reported_at_ >= limits::kTimeSpentInterval) report();
  timer_.set(now +
             (account_.is_redoing() ? limits::kRedoPollInterval : limits::kTimeSpentInterval));
}

void GoodputMonitor::on_round_over() {
  timer_.set(Instant::never());
  is_ticking_ = false;
  report();
}

// Without the time that is not divided yet: a counter must not shrink when that is.
void GoodputMonitor::report() {
  reported_at_ = boot_now();
  callbacks_.keep();
  if (!callbacks_.sends()) return;
  const Goodput divided = account_.divided();
  callbacks_.send(
      control::TimeSpent{{divided.spent.begin(), divided.spent.end()}, divided.submissions});
}

}  // namespace cpprun

#include "tests/support/sim/node_workers.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/suspension.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

// A little less than the protocol allows, for the kernel's own delay.
constexpr Duration kKillDuration = limits::kKillDuration - 10ms;
constexpr int kCannotSave = 1;

}  // namespace

bool NodeWorkers::may_start() const {
  return std::ranges::all_of(workers_,
                             [](const Worker& w) { return !w.is_alive || w.is_released; });
}

bool NodeWorkers::can_save() const {
  return std::ranges::any_of(workers_, [](const Worker& w) { return w.is_alive && w.can_save; });
}

bool NodeWorkers::is_idle() const {
  return std::ranges::all_of(workers_,
                             [](const Worker& w) { return !w.is_alive || !w.is_counted; });
}

// As the agent sees it: a worker that has stayed counts, although the next round draws anew what it
// can.
bool NodeWorkers::is_any_able_to_regroup() const {
  return had_survivors_ ||
         std::ranges::any_of(workers_, [](const Worker& w) { return w.releases_in > Duration{}; });
}

std::string NodeWorkers::kept_text() const {
  const auto kept = std::ranges::count_if(workers_, [](const Worker& w) { return w.is_alive; });
  return kept == 0 ? "" : ", " + std::to_string(kept) + " of them from the round before";
}

void NodeWorkers::begin_round(RoundName round) {
  had_survivors_ = std::exchange(has_survivors_, false);
  round_ = round;
  workers_.clear();
  ++starts_;
  killed_at_.reset();
  stuck_after_ = limits::kKillTimeout;
}

void NodeWorkers::start(const std::vector<WorkerBehavior>& lives, int64_t base_rank) {
  for (size_t i = 0; i < lives.size(); ++i) {
    const WorkerBehavior& liveness = lives[i];
    Worker& worker = workers_.emplace_back();
    worker.end.local_rank = LocalRank(static_cast<int64_t>(i));
    worker.end.rank = Rank(base_rank + static_cast<int64_t>(i));
    worker.end.pid = static_cast<int>(4000 + i);
    worker.ignores_sigterm = liveness.ignores_sigterm;
    worker.outlives_kill = liveness.outlives_kill;
    worker.stops_in = liveness.stops_in;
    worker.can_save = liveness.can_save;
    worker.releases_in = liveness.releases_in;
    if (worker.releases_in > Duration{}) events_.on_elastic();
    worker.ready_at = context_.event_queue.now() + liveness.ready_in;
    if (!liveness.is_hanging)
      end_worker_at(worker, worker.ready_at + liveness.runs, liveness.exit_code);
  }
}

int64_t NodeWorkers::live() const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [](const Worker& w) { return w.is_alive; });
}

bool NodeWorkers::has_running() const {
  return std::any_of(workers_.begin(), workers_.end(), [this](const Worker& w) {
    return w.is_alive && w.killed_at > context_.event_queue.now();
  });
}

void NodeWorkers::stop(const agent::StopWorkers& effect) {
  for (Worker& worker : workers_) {
    if (!worker.is_alive) continue;
    const bool may_stay = effect.keeps_survivors && worker.end.local_rank != effect.hung;
    worker.is_asked = may_stay && worker.releases_in > Duration{};
    worker.is_released = false;
    if (worker.is_asked) ask_to_regroup(static_cast<size_t>(worker.end.local_rank.value));
    if (worker.is_asked) continue;
    const bool is_ready = worker.ready_at <= context_.event_queue.now();
    worker.is_saving = effect.lets_save && worker.can_save && is_ready;
    stop_worker(worker, effect.signal, effect.grace);
  }
  const Instant kill =
      context_.event_queue.now() + (effect.signal == SIGKILL ? Duration{} : effect.grace);
  killed_at_ = std::min(killed_at_.value_or(kill), kill);
  if (effect.is_urgent) stuck_after_ = limits::kUrgentKillTimeout;
  watch_killed();
}

void NodeWorkers::end_saving(const agent::EndSaving& effect) {
  for (Worker& worker : workers_) {
    if (!worker.is_alive || !std::exchange(worker.is_saving, false)) continue;
    stop_worker(worker, effect.signal, worker.stops_in);
  }
}

void NodeWorkers::ask_to_regroup(size_t local_rank) {
  Worker& worker = workers_[local_rank];
  if (worker.killed_at.is_never()) worker.ends_at = Instant::never();
  context_.event_queue.at(context_.event_queue.now() + worker.releases_in,
                          [this, local_rank, starts = starts_] {
                            if (starts == starts_ && !paused_at_) release(local_rank);
                          });
}

void NodeWorkers::release(size_t local_rank) {
  Worker& worker = workers_[local_rank];
  if (!worker.is_alive || !worker.is_asked || !worker.ends_at.is_never()) return;
  worker.is_asked = false;
  worker.is_released = worker.has_left_group = true;
  uncount(worker);
  trace("its worker " + std::to_string(worker.end.rank.value) + " leaves its group");
  report_end();
}

void NodeWorkers::report_end() {
  const auto released =
      std::ranges::count_if(workers_, [](const Worker& w) { return w.is_alive && w.is_released; });
  if (live() > released) return;
  if (released > 0 && std::exchange(has_survivors_, true)) return;
  if (released > 0) killed_at_.reset();
  events_.when_awake([this, is_empty = released == 0] { events_.on_round_over(is_empty); });
}

void NodeWorkers::stop_worker(Worker& worker, int signal, Duration grace) {
  const bool is_kill = signal == SIGKILL;
  const bool is_ready = worker.ready_at <= context_.event_queue.now();
  bool is_by_kill = is_kill || (is_ready && (worker.ignores_sigterm || worker.stops_in > grace));
  Duration after = is_kill || !is_ready ? Duration{} : is_by_kill ? grace : worker.stops_in;
  if (is_by_kill) after += prng_.up_to(kKillDuration);
  Instant end = context_.event_queue.now() + after;
  if (end >= worker.ends_at) return;
  worker.end.is_stopped_by_us = true;
  const int saved = events_.is_disk_full() ? kCannotSave : kStoppedResumable;
  const int code = worker.is_saving ? saved : -signal;
  end_worker_at(worker, end, is_by_kill ? -SIGKILL : code);
}

// ---------------------------------------------------------------- workers' ends

void NodeWorkers::fail(size_t local_rank, int exit_code) {
  const bool is_there = local_rank < workers_.size();
  if (!is_there || workers_[local_rank].killed_at <= context_.event_queue.now()) return;
  end_worker_at(workers_[local_rank], context_.event_queue.now(), exit_code);
}

void NodeWorkers::end_worker_at(Worker& worker, Instant when, int exit_code) {
  if (!worker.is_alive || worker.ends_at <= when) return;
  if (exit_code == -SIGKILL && worker.outlives_kill > Duration{}) {
    if (worker.killed_at <= when) return;
    kill_at(worker, when);
    when = when + worker.outlives_kill;
  }
  worker.ends_at = when;
  worker.end.exit_code = exit_code;
  context_.event_queue.at(when, [this] { reap(); });
}

// ---------------------------------------------------------------- workers that survive SIGKILL

void NodeWorkers::kill_at(Worker& worker, Instant when) {
  worker.killed_at = when;
  context_.event_queue.at(when, [this] { stop_the_killed(); });
}

void NodeWorkers::stop_the_killed() {
  if (paused_at_) return;
  for (Worker& worker : workers_) {
    if (worker.is_alive && worker.killed_at <= context_.event_queue.now()) uncount(worker);
  }
}

void NodeWorkers::watch_killed() {
  context_.event_queue.at(*killed_at_ + stuck_after_, [this] {
    if (!paused_at_) events_.when_awake([this] { on_stuck_time(); });
  });
}

// No node waits for it any longer: neither this agent nor, after its end, the others (R2).
void NodeWorkers::on_stuck_time() {
  const bool is_due = killed_at_ && context_.event_queue.now() >= *killed_at_ + stuck_after_;
  const bool is_any_killed = std::ranges::any_of(
      workers_, [](const Worker& w) { return w.is_alive && !w.is_asked && !w.is_released; });
  if (!is_due || !is_any_killed || !events_.is_running()) return;
  const bool may_regroup = is_any_able_to_regroup();
  trace("SIGKILL has not ended its workers");
  events_.on_stuck();
  context_.checks.require(
      may_regroup || !events_.is_running(),
      "stuck: " + spec_.label + " waits for a worker that SIGKILL does not end");
  killed_at_ = context_.event_queue.now();
  if (events_.is_running()) watch_killed();
}

void NodeWorkers::kill_all(Duration within) {
  for (Worker& worker : workers_) {
    Instant end = context_.event_queue.now() + prng_.up_to(within);
    worker.is_excused = true;
    end_worker_at(worker, end, -SIGKILL);
  }
}

void NodeWorkers::uncount(Worker& worker) {
  if (!std::exchange(worker.is_counted, false)) return;
  context_.checks.on_workers_gone(round_, 1);
}

void NodeWorkers::reap() {
  if (paused_at_) return;
  bool has_news = false;
  for (Worker& worker : workers_) {
    if (!worker.is_alive || worker.ends_at > context_.event_queue.now()) continue;
    has_news = true;
    worker.is_alive = false;
    uncount(worker);
    worker.end.ended_at = local_now();
    worker.end.ended_at_wall = WallTime{context_.event_queue.now().nanoseconds() / 1000};
    context_.trace.fold(static_cast<uint64_t>(worker.end.exit_code) ^
                        spec_.agent.hello.node.incarnation.value << 8);
    if (!worker.end.is_success() && !worker.end.is_stopped_by_us && !worker.is_excused) {
      context_.checks.on_true_failure(spec_.agent.hello.node.name, round_);
    }
    trace("its worker " + std::to_string(worker.end.rank.value) + " " + describe_end(worker.end));
    events_.when_awake([this, end = worker.end] {
      // Once the reaper process has killed, an agent counts no exit as a failure (R11).
      const bool is_excused = std::any_of(workers_.begin(), workers_.end(),
                                          [](const Worker& w) { return w.is_excused; });
      events_.on_exit(end, is_excused);
    });
  }
  if (!has_news) return;
  const bool has_saved = std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) {
    return !w.is_alive && w.end.exit_code == kStoppedResumable;
  });
  if (has_saved && live() == 0) events_.on_saved();
  if (context_.on_workers_changed) context_.on_workers_changed();
  report_end();
}

// ---------------------------------------------------------------- the reaper process

bool NodeWorkers::set_lease(Instant deadline) {
  worker_lease_deadline_ = deadline;
  if (held_until_ && deadline > local_now()) end_hold();
  arm_reaper();
  return std::exchange(has_reaper_killed_, false);
}

void NodeWorkers::arm_reaper() {
  if (worker_lease_deadline_.is_never()) return;
  context_.event_queue.at(spec_.clock.truth(worker_lease_deadline_), [this] { on_reaper(); });
}

void NodeWorkers::on_reaper() {
  if (paused_at_ || !events_.is_running() || worker_lease_deadline_ > local_now()) return;
  const Duration late = local_now() - worker_lease_deadline_;
  if (!held_until_ && late >= limits::kReaperLateWakeup) return hold_workers();
  if (held_until_ && context_.event_queue.now() < *held_until_) return;
  held_until_.reset();
  worker_lease_deadline_ = Instant::never();
  has_reaper_killed_ = live() > 0;
  if (has_reaper_killed_) trace("its reaper process kills the workers");
  kill_all(kKillDuration);
}

// It was suspended with its host past the deadline. The workers do not count as live: they are
// stopped.
void NodeWorkers::hold_workers() {
  if (live() > 0) trace("its reaper process stops the workers for a while");
  held_until_ = context_.event_queue.now() + limits::kResumeAnswerTimeout;
  context_.event_queue.at(*held_until_, [this] { on_reaper(); });
  for (Worker& worker : workers_) worker.is_excused = true;
}

// The worker lease was extended: they run again.
void NodeWorkers::end_hold() {
  held_until_.reset();
  for (Worker& worker : workers_) worker.is_excused = worker.is_excused && !worker.is_alive;
  if (live() > 0) trace("its workers continue");
  count_live();
}

void NodeWorkers::count_live() {
  int64_t live = 0;
  for (Worker& worker : workers_) {
    if (!worker.is_alive) continue;
    worker.is_counted = worker_lease_deadline_ > local_now() && !worker.is_excused &&
                        !worker.has_left_group && worker.killed_at > context_.event_queue.now();
    live += worker.is_counted ? 1 : 0;
  }
  if (live > 0) context_.checks.on_workers_live(round_, live);
}

// ---------------------------------------------------------------- the host

void NodeWorkers::pause() {
  paused_at_ = context_.event_queue.now();
  for (Worker& worker : workers_) {
    if (worker.is_alive) uncount(worker);
  }
}

void NodeWorkers::resume() {
  const Instant paused_at = *std::exchange(paused_at_, std::nullopt);
  if (killed_at_) {
    *killed_at_ = *killed_at_ + (context_.event_queue.now() - paused_at);
    watch_killed();
  }
  for (Worker& worker : workers_) {
    if (worker.is_alive) shift(worker, paused_at);
  }
  count_live();  // none past the deadline: the reaper process stops them as soon as it runs
  on_reaper();
}

// What the worker does comes later by the time for which its host stood still.
void NodeWorkers::shift(Worker& worker, Instant paused_at) {
  const Duration stood = context_.event_queue.now() - paused_at;
  if (worker.is_asked) ask_to_regroup(static_cast<size_t>(worker.end.local_rank.value));
  const Instant before = std::exchange(worker.ends_at, Instant::never());
  if (worker.killed_at.is_never()) {
    return end_worker_at(worker, before + stood, worker.end.exit_code);
  }
  worker.ends_at = before + stood;
  context_.event_queue.at(worker.ends_at, [this] { reap(); });
  if (worker.killed_at > paused_at) kill_at(worker, worker.killed_at + stood);
}

void NodeWorkers::lose_power() {
  paused_at_.reset();
  for (Worker& worker : workers_) {
    if (worker.is_alive) uncount(worker);
    worker.is_alive = false;
  }
}

}  // namespace cpprun::sim

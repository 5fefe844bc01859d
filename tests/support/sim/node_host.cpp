// Node: its workers, its guardian, and what befalls its host.
#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
#include "common/limits/rendezvous.hpp"
#include "tests/support/sim/node.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {
// A little less than the protocol allows, for what the kernel itself needs.
constexpr Duration kKillTakes = limits::kKillTakes - 10ms;
constexpr Duration kDeathTakes = limits::kDeathGrace - 10ms;
constexpr int kCannotSave = 1;

RoundName name_of(const control::World& world) {
  return RoundName{world.epoch, world.round};
}
}  // namespace

int64_t Node::live_workers() const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [](const Worker& w) { return w.is_alive; });
}

bool Node::has_running_workers() const {
  return std::any_of(workers_.begin(), workers_.end(), [this](const Worker& w) {
    return w.is_alive && w.killed_at > around_.agenda.now();
  });
}

// ---------------------------------------------------------------- workers

void Node::carry_out(const agent::StartWorkers& effect) {
  around_.checks.on_start(id().incarnation, effect.world, epoch_);
  around_.checks.require(live_workers() == 0, "S1: an agent starts workers beside old ones");
  world_ = effect.world;
  around_.trace.fold(id().incarnation.value ^ static_cast<uint64_t>(world_->round.value) << 32);
  workers_.clear();
  ++starts_;
  killed_at_.reset();
  patience_ = limits::kKillPatience;
  SpawnPlan plan = around_.plan(*this, effect.world);
  if (plan.fails) {
    trace("can't start its workers");
    around_.checks.on_true_failure(name_of(effect.world));
    tell_core([this](Instant now, agent::Effects& e) {
      core_.on_start_failed(now, Error{ErrorKind::BadValue, "no such program"}, e);
    });
    return;
  }
  trace("starts its workers of round " + std::to_string(world_->round.value));
  for (size_t i = 0; i < plan.lives.size(); ++i) {
    const WorkerLife& life = plan.lives[i];
    Worker& worker = workers_.emplace_back();
    worker.end.local_rank = LocalRank(static_cast<int64_t>(i));
    worker.end.rank = Rank(world_->base_rank + static_cast<int64_t>(i));
    worker.end.pid = static_cast<int>(4000 + i);
    worker.is_deaf = life.is_deaf;
    worker.outlives_kill = life.outlives_kill;
    worker.stops_in = life.stops_in;
    worker.can_save = life.can_save;
    worker.ready_at = around_.agenda.now() + life.ready_in;
    if (!life.is_hanging) end_worker_at(worker, worker.ready_at + life.runs, life.exit_code);
  }
  if (!plan.lives.empty()) save_as_it_goes(plan.lives.front().saves_each, 1);
  if (plan.is_resume_unusable) fall_back();
  around_.checks.on_workers_live(name_of(*world_), static_cast<int64_t>(workers_.size()));
  if (around_.on_workers_changed) around_.on_workers_changed();
}

void Node::carry_out(const agent::StopWorkers& effect) {
  for (Worker& worker : workers_) {
    if (!worker.is_alive) continue;
    const bool is_ready = worker.ready_at <= around_.agenda.now();
    worker.is_saving = effect.lets_save && worker.can_save && is_ready;
    stop_worker(worker, effect.signal, effect.grace);
  }
  const Instant kill =
      around_.agenda.now() + (effect.signal == SIGKILL ? Duration{} : effect.grace);
  killed_at_ = std::min(killed_at_.value_or(kill), kill);
  if (effect.is_urgent) patience_ = limits::kUrgentKillPatience;
  watch_killed();
}

void Node::carry_out(const agent::EndSaving& effect) {
  for (Worker& worker : workers_) {
    if (!worker.is_alive || !std::exchange(worker.is_saving, false)) continue;
    stop_worker(worker, effect.signal, worker.stops_in);
  }
}

void Node::stop_worker(Worker& worker, int signal, Duration grace) {
  const bool is_kill = signal == SIGKILL;
  const bool is_ready = worker.ready_at <= around_.agenda.now();
  bool is_by_kill = is_kill || (is_ready && (worker.is_deaf || worker.stops_in > grace));
  Duration after = is_kill || !is_ready ? Duration{} : is_by_kill ? grace : worker.stops_in;
  if (is_by_kill) after += dice_.up_to(kKillTakes);
  Instant end = around_.agenda.now() + after;
  if (end >= worker.ends_at) return;
  worker.end.is_stopped_by_us = true;
  const int saved = is_disk_full() ? kCannotSave : kStoppedResumable;
  const int code = worker.is_saving ? saved : -signal;
  end_worker_at(worker, end, is_by_kill ? -SIGKILL : code);
}

// ---------------------------------------------------------------- workers' ends

void Node::fail_worker(size_t local_rank, int exit_code) {
  if (local_rank >= workers_.size() || workers_[local_rank].killed_at <= around_.agenda.now()) {
    return;
  }
  end_worker_at(workers_[local_rank], around_.agenda.now(), exit_code);
}

void Node::end_worker_at(Worker& worker, Instant when, int exit_code) {
  if (!worker.is_alive || worker.ends_at <= when) return;
  if (exit_code == -SIGKILL && worker.outlives_kill > Duration{}) {
    if (worker.killed_at <= when) return;
    kill_at(worker, when);
    when = when + worker.outlives_kill;
  }
  worker.ends_at = when;
  worker.end.exit_code = exit_code;
  around_.agenda.at(when, [this] { reap(); });
}

// ---------------------------------------------------------------- what SIGKILL does not end

void Node::kill_at(Worker& worker, Instant when) {
  worker.killed_at = when;
  around_.agenda.at(when, [this] { stop_the_killed(); });
}

void Node::stop_the_killed() {
  if (paused_at_) return;
  for (Worker& worker : workers_) {
    if (worker.is_alive && worker.killed_at <= around_.agenda.now()) uncount(worker);
  }
}

void Node::watch_killed() {
  around_.agenda.at(*killed_at_ + patience_, [this] {
    if (!paused_at_) when_awake([this] { on_stuck_time(); });
  });
}

// Nobody waits for it any longer: neither this agent nor, once it has gone, the others (R2).
void Node::on_stuck_time() {
  const bool is_due = killed_at_ && around_.agenda.now() >= *killed_at_ + patience_;
  if (!is_due || live_workers() == 0 || !is_running()) return;
  trace("SIGKILL has not ended its workers");
  tell_core([this](Instant, agent::Effects& e) { core_.on_stuck("a worker of " + label(), e); });
  around_.checks.require(!is_running(),
                         "stuck: " + label() + " waits for a worker that SIGKILL does not end");
}

void Node::kill_workers(Duration within) {
  for (Worker& worker : workers_) {
    Instant end = around_.agenda.now() + dice_.up_to(within);
    worker.is_excused = true;
    end_worker_at(worker, end, -SIGKILL);
  }
}

void Node::uncount(Worker& worker) {
  if (std::exchange(worker.is_counted, false)) {
    around_.checks.on_workers_gone(name_of(*world_), 1);
  }
}

void Node::reap() {
  if (paused_at_) return;
  bool has_news = false;
  for (Worker& worker : workers_) {
    if (!worker.is_alive || worker.ends_at > around_.agenda.now()) continue;
    has_news = true;
    worker.is_alive = false;
    uncount(worker);
    worker.end.ended_at = local_now();
    worker.end.ended_at_wall = WallTime{around_.agenda.now().nanoseconds() / 1000};
    around_.trace.fold(static_cast<uint64_t>(worker.end.exit_code) ^ id().incarnation.value << 8);
    if (!worker.end.is_success() && !worker.end.is_stopped_by_us && !worker.is_excused) {
      around_.checks.on_true_failure(name_of(*world_));
    }
    trace("its worker " + std::to_string(worker.end.rank.value) + " " + describe_end(worker.end));
    when_awake([this, end = worker.end] {
      // Once the guardian has killed, an agent takes no end for a failure (R11).
      const bool is_excused = std::any_of(workers_.begin(), workers_.end(),
                                          [](const Worker& w) { return w.is_excused; });
      const bool is_to_be_told = !end.is_success() && !end.is_stopped_by_us && !is_excused &&
                                 core_.state() == agent::Agent::State::Running;
      if (is_to_be_told) around_.checks.on_known_failure(id().incarnation, name_of(*world_));
      tell_core([&](Instant now, agent::Effects& e) { core_.on_worker_end(now, end, e); });
    });
  }
  if (!has_news) return;
  const bool has_saved = std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) {
    return !w.is_alive && w.end.exit_code == kStoppedResumable;
  });
  if (has_saved && live_workers() == 0) save_snapshot();
  if (around_.on_workers_changed) around_.on_workers_changed();
  if (live_workers() > 0) return;
  when_awake(
      [this] { tell_core([this](Instant now, agent::Effects& e) { core_.on_quiet(now, e); }); });
}

// ---------------------------------------------------------------- the guardian

void Node::arm_guardian() {
  if (fence_.is_never()) return;
  around_.agenda.at(spec_.clock.truth(fence_), [this] { on_guardian(); });
}

void Node::on_guardian() {
  if (paused_at_ || !is_running() || fence_ > local_now()) return;
  fence_ = Instant::never();
  if (live_workers() > 0) trace("its guardian kills the workers");
  kill_workers(kKillTakes);
}

// ---------------------------------------------------------------- faults

void Node::kill(bool is_reset) {
  if (!is_running() || paused_at_) return;
  trace("its agent is killed");
  is_alive_ = false;
  around_.network.end(program_, is_reset);
  if (lead_ != nullptr) lead_->kill(is_reset);
  if (candidate_) candidate_->end();
  kill_workers(kDeathTakes);
}

// Everything on the host is gone at once, and nobody is told. The network is the caller's part.
void Node::lose_power() {
  if (!is_running()) return;
  trace("its host loses power");
  is_alive_ = false;
  if (lead_ != nullptr) lead_->lose_power();
  if (candidate_) candidate_->end();
  paused_at_.reset();
  for (Worker& worker : workers_) {
    if (worker.is_alive) uncount(worker);
    worker.is_alive = false;
  }
  if (around_.on_workers_changed) around_.on_workers_changed();
}

void Node::stop_reading() {
  if (!is_running() || is_frozen_) return;
  trace("does not read");
  around_.network.set_reading(program_, false);
}

void Node::read_again() {
  if (!is_running() || is_frozen_) return;
  around_.network.set_reading(program_, true);
  around_.network.deliver_unread(program_);
}

void Node::freeze() {
  if (!is_running() || is_frozen_) return;
  trace("freezes");
  is_frozen_ = true;
  around_.network.set_reading(program_, false);
  if (lead_ != nullptr) lead_->freeze();
  if (candidate_) candidate_->set_frozen(true);
}

void Node::pause() {
  if (!is_running() || is_frozen_) return;
  freeze();
  trace("and its host stands still");
  paused_at_ = around_.agenda.now();
  around_.network.cut_off(spec_.host);
  for (Worker& worker : workers_) {
    if (worker.is_alive) uncount(worker);
  }
}

void Node::thaw() {
  if (!is_frozen_ || !is_alive_) return;
  trace("runs again");
  is_frozen_ = false;
  if (candidate_) candidate_->set_frozen(false);
  if (paused_at_) {
    const Instant paused_at = *std::exchange(paused_at_, std::nullopt);
    Duration stood = around_.agenda.now() - paused_at;
    if (killed_at_) {
      *killed_at_ = *killed_at_ + stood;
      watch_killed();
    }
    around_.network.mend_host(spec_.host);
    int64_t going_on = 0;
    for (Worker& worker : workers_) {
      if (!worker.is_alive) continue;
      Instant before = std::exchange(worker.ends_at, Instant::never());
      if (worker.killed_at.is_never()) {
        end_worker_at(worker, before + stood, worker.end.exit_code);
      } else {
        worker.ends_at = before + stood;
        around_.agenda.at(worker.ends_at, [this] { reap(); });
        if (worker.killed_at > paused_at) kill_at(worker, worker.killed_at + stood);
      }
      // Past the deadline they are as good as dead: the guardian comes as soon as it runs.
      worker.is_counted =
          fence_ > local_now() && !worker.is_excused && worker.killed_at > around_.agenda.now();
      going_on += worker.is_counted ? 1 : 0;
    }
    if (going_on > 0) around_.checks.on_workers_live(name_of(*world_), going_on);
    on_guardian();
  }
  // What the process looks at first is up to its loop and the kernel.
  std::array<std::function<void()>, 3> first{[this] {
                                               on_timer();
                                               if (candidate_) candidate_->on_timer();
                                             },
                                             [this] {
                                               around_.network.set_reading(program_, true);
                                               around_.network.deliver_unread(program_);
                                             },
                                             [this] {
                                               for (auto& event : std::exchange(mailbox_, {}))
                                                 event();
                                             }};
  for (size_t i = 3; i > 1; --i) {
    std::swap(first[i - 1], first[static_cast<size_t>(dice_.below(static_cast<int64_t>(i)))]);
  }
  for (auto& look : first) {
    if (is_running() && !is_frozen_) look();
  }
  if (lead_ != nullptr) lead_->thaw();
}

void Node::signal(int number) {
  if (!is_running()) return;
  trace("gets signal " + std::to_string(number));
  when_awake([this, number] {
    const bool is_again = std::exchange(was_asked_, true) && number == SIGTERM;
    tell_core([&](Instant now, agent::Effects& e) {
      const size_t before = e.size();
      core_.on_signal(now, number, e);
      around_.checks.require(!is_again || e.size() == before,
                             "signals: a further SIGTERM is no new request");
    });
  });
}

}  // namespace cpprun::sim

#include <algorithm>
#include <array>
#include <cstdio>

#include "common/limits/snapshots.hpp"
#include "tests/support/sim/node.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

void Node::save_snapshot() {
  const int64_t step = context_.event_queue.now().nanoseconds() / 1'000'000;
  std::string id = std::to_string(step);
  id.insert(0, 32 - id.size(), '0');
  keep_snapshot(control::SnapshotName{step, id});
}

void Node::keep_snapshot(control::SnapshotName snapshot) {
  if (std::find(snapshots_.begin(), snapshots_.end(), snapshot) != snapshots_.end()) return;
  const auto is_older = [&](const auto& known) { return known.step <= snapshot.step; };
  snapshots_.insert(std::find_if(snapshots_.begin(), snapshots_.end(), is_older), snapshot);
  if (snapshots_.size() > limits::kSnapshotsReported) snapshots_.pop_back();
}

// One step per millisecond. The same step of the same round is the same snapshot on every node.
void Node::save_as_it_goes(Duration each, int64_t nth) {
  if (each == Duration{} || !spec_.agent.facts.has_snapshot_dir) return;
  context_.event_queue.in(each, [this, each, nth, start = starts_] {
    if (start != starts_ || !is_running() || paused_at_ || live_workers() == 0) return;
    save_as_it_goes(each, nth + 1);
    if (core_.state() != agent::Agent::State::Running || is_disk_full()) return;
    const int64_t begun = assignment_->resume ? assignment_->resume->snapshot.step : 0;
    const int64_t step = begun + nth * (each / 1ms);
    std::array<char, 40> id{};
    std::snprintf(id.data(), id.size(), "%08llx%08llx%016llx",
                  static_cast<unsigned long long>(assignment_->term.value),
                  static_cast<unsigned long long>(assignment_->round.value),
                  static_cast<unsigned long long>(step));
    keep_snapshot({step, std::string(id.data(), 32)});
    when_awake([this] {
      if (core_.state() != agent::Agent::State::Running) return;
      run_core([this](Instant now, agent::Effects& e) { core_.on_snapshots(now, snapshots_, e); });
    });
  });
}

// The workers report that they cannot use the snapshot of the round.
void Node::fall_back() {
  if (!assignment_->resume) return;
  context_.event_queue.in(context_.snapshot_prng.up_to(200ms), [this, start = starts_] {
    if (start != starts_ || live_workers() == 0) return;
    when_awake(
        [this] { run_core([this](Instant, agent::Effects& e) { core_.on_fell_back(-1, e); }); });
  });
}

void Node::carry_out(const agent::ScanSnapshots&) {
  context_.event_queue.in(context_.snapshot_prng.up_to(20ms), [this] {
    when_awake([this] {
      run_core([this](Instant now, agent::Effects& e) { core_.on_snapshots(now, snapshots_, e); });
    });
  });
}

void Node::carry_out(const agent::FetchSnapshot& effect) {
  const FetchPlan plan = context_.plan_fetch();
  trace("fetches the snapshot of step " + std::to_string(effect.resume.snapshot.step));
  const bool is_free =
      std::ranges::all_of(workers_, [](const Worker& w) { return !w.is_alive || !w.is_counted; });
  context_.checks.require(is_free, "an agent fetches while it has workers");
  context_.event_queue.in(
      plan.takes, [this, plan, number = ++fetches_, resume = effect.resume, round = told_] {
        when_awake([this, plan, number, resume, round] {
          if (number != fetches_) return;
          const bool is_damaged = plan.is_damaged && !is_disk_full();
          const bool fails = plan.fails || is_disk_full();
          if (fails && !is_damaged) context_.checks.on_true_failure(id().name, round);
          if (!fails) keep_snapshot(resume.snapshot);
          run_core([&](Instant now, agent::Effects& e) {
            if (!fails) return core_.on_fetched(now, e);
            core_.on_fetch_failed(now, Error{ErrorKind::System, "the fetch failed"}, is_damaged, e);
          });
        });
      });
}

void Node::fill_disk(Instant until) {
  if (!is_running()) return;
  trace("its disk is full");
  disk_is_full_until_ = std::max(disk_is_full_until_, until);
}

}  // namespace cpprun::sim

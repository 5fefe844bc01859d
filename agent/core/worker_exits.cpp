#include "agent/core/worker_exits.hpp"

#include <algorithm>

#include "common/exit_code.hpp"

namespace cpprun::agent {

void WorkerExits::begin_round() {
  exits_.clear();
  unstepped_.clear();
  hung_.reset();
  are_excused_ = are_some_released_ = false;
}

void WorkerExits::add(const WorkerExit& exit) {
  exits_.push_back(exit);
  if (hung_ && hung_->local_rank == exit.local_rank) exits_.back().hang = hung_->hang;
}

int64_t WorkerExits::last_step() const {
  int64_t last = -1;
  for (const WorkerExit& exit : exits_) last = std::max(last, exit.step);
  return last;
}

// The worker lost no work to the stop: it saved, or had finished no step.
bool WorkerExits::is_resumable(const WorkerExit& exit) const {
  return exit.exit_code == kStoppedResumable || unstepped_.contains(exit.local_rank.value);
}

bool WorkerExits::have_lost_nothing() const {
  const auto has_lost_nothing = [this](const WorkerExit& exit) {
    return exit.is_success() || is_resumable(exit);
  };
  return !are_some_released_ && std::ranges::all_of(exits_, has_lost_nothing);
}

bool WorkerExits::can_resume() const {
  return std::ranges::any_of(exits_, [this](const WorkerExit& exit) { return is_resumable(exit); });
}

bool WorkerExits::have_saved() const {
  return std::ranges::count(exits_, kStoppedResumable, &WorkerExit::exit_code) > 0;
}

std::optional<WorkerExit> WorkerExits::own_failure() const {
  if (are_excused_ || !std::ranges::any_of(exits_, has_own_cause)) return std::nullopt;
  return for_the_wire(exits_[root_cause_index(exits_)]);
}

void WorkerExits::keep_if_failed() {
  const bool has_failed =
      std::ranges::any_of(exits_, [](const WorkerExit& exit) { return !exit.is_success(); });
  if (has_failed) last_failed_round_ = exits_;
}

}  // namespace cpprun::agent

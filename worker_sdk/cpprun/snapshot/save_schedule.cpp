#include "cpprun/snapshot/save_schedule.hpp"

#include <algorithm>

namespace cpprun::snapshot {

using std::chrono::steady_clock;

double SaveSchedule::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(steady_clock::now() - started_at_).count();
}

void SaveSchedule::resume(int64_t step, double seconds) {
  seconds_before_ = seconds;
  started_at_ = steady_clock::now();
  saved_at_ = this->seconds();
  saved_step_ = step;
}

// Clocks differ between ranks, steps do not: rank 0 reads its clock at steps that all ranks know.
bool SaveSchedule::is_due(int64_t step, const SaveWhen& when, const SaveCost& cost) {
  const bool by_steps =
      when.every_steps > 0 && step > 0 && step % when.every_steps == 0 && step != saved_step_;
  double interval = std::chrono::duration<double>(when.every).count();
  if (when.auto_interval) {
    const int64_t failures = own_variable().restart_count;
    const double best = best_interval(cost.pause, time_between_failures(seconds(), failures));
    const double automatic = std::max(best, 2 * cost.writing);
    interval = interval > 0 ? std::min(interval, automatic) : automatic;
  }
  const bool has_interval = when.auto_interval || interval > 0;
  if (by_steps || !has_interval || !polls_.is_due(step)) return by_steps;
  const bool is_time = seconds() - saved_at_ >= interval;
  const auto agreed =
      comm_.from_first({is_time ? 1 : 0, polls_.next_poll(step, seconds(), interval)});
  polls_.set_next_poll(agreed[1]);
  return agreed[0] != 0 && step != saved_step_;
}

}  // namespace cpprun::snapshot

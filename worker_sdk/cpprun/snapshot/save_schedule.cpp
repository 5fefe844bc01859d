#include "cpprun/snapshot/save_schedule.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "common/goodput/save_interval.hpp"
#include "cpprun/snapshot/job_history.hpp"

namespace cpprun::snapshot {
namespace {

bool spares_disk(const SaveWhen& when) {
  return when.disk_every_steps > 0 || when.disk_every.count() > 0;
}

}  // namespace

void check(const SaveWhen& when) {
  const int64_t lowest = std::min({when.every_steps, int64_t{when.every.count()},
                                   when.disk_every_steps, int64_t{when.disk_every.count()}});
  if (lowest < 0) throw std::invalid_argument("a member of SaveWhen is negative");
  const bool saves = when.every_steps > 0 || when.every.count() > 0 || when.auto_interval;
  if (saves || !spares_disk(when)) return;
  throw std::invalid_argument(
      "SaveWhen has disk_every or disk_every_steps, which choose among the saves of every_steps, "
      "every and auto_interval, but none of these, so that nothing would be saved");
}

SaveSchedule::SaveSchedule(const SnapshotComm& comm, std::string owner)
    : comm_(comm), owner_(std::move(owner)) {
  own_job_history().saved_at(owner_, steady_seconds());  // from now on
}

double SaveSchedule::begin_save(int64_t step, bool to_disk) {
  saved_step_ = step;
  const double seconds = own_job_history().begin_save(owner_, steady_seconds());
  if (to_disk) on_disk_ = {step, seconds};
  return seconds;
}

void SaveSchedule::resume(int64_t step, double seconds) {
  own_job_history().resume(owner_, seconds, own_restarts(), steady_seconds());
  saved_step_ = step;
  last_step_ = step;
  if (on_disk_ && on_disk_->first > step) on_disk_.reset();  // it has no part in what follows
}

bool SaveSchedule::is_for_disk(int64_t step, const SaveWhen& when) const {
  if (!spares_disk(when) || !on_disk_) return true;
  const auto& [last_step, last_seconds] = *on_disk_;
  if (when.disk_every_steps > 0 && step - last_step >= when.disk_every_steps) return true;
  if (when.disk_every.count() <= 0) return false;
  const double passed = own_job_history().seconds(steady_seconds()) - last_seconds;
  const bool is_time = passed >= std::chrono::duration<double>(when.disk_every).count();
  return comm_.from_first({is_time ? 1 : 0})[0] != 0;
}

// Clocks differ between ranks, steps do not: rank 0 reads its clock at steps that all ranks know.
bool SaveSchedule::is_due(int64_t step, const SaveWhen& when, const SaveCost& cost) {
  check(when);
  // A program may call this at some steps only, such as at the end of an epoch.
  const int64_t last = std::min(last_step_.value_or(step - 1), step - 1);
  last_step_ = step;
  const bool by_steps = when.every_steps > 0 && step > 0 && step != saved_step_ &&
                        step / when.every_steps > last / when.every_steps;
  double interval = std::chrono::duration<double>(when.every).count();
  const bool has_interval = when.auto_interval || interval > 0;
  if (by_steps || !has_interval || !polls_.is_due(step)) return by_steps;
  JobHistory& history = own_job_history();
  const double now = steady_seconds(), seconds = history.seconds(now);
  if (when.auto_interval) {
    const double between = time_between_rollbacks(seconds, history.rollbacks());
    const double busy = spares_disk(when) ? cost.staging : cost.writing;
    const double automatic = std::max(best_save_interval(cost.pause, between), 2 * busy);
    interval = interval > 0 ? std::min(interval, automatic) : automatic;
  }
  const double left = interval - (seconds - history.saved_at(owner_, now));
  const int64_t next_poll = polls_.next_poll(step, seconds, time_until_poll(left, interval));
  const auto agreed = comm_.from_first({left <= 0 ? 1 : 0, next_poll});
  polls_.set_next_poll(agreed[1]);
  return agreed[0] != 0 && step != saved_step_;
}

}  // namespace cpprun::snapshot

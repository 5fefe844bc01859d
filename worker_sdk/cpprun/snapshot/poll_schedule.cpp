#include "cpprun/snapshot/poll_schedule.hpp"

#include <algorithm>

namespace cpprun::snapshot {
namespace {

constexpr int64_t kStepsMax = 10'000;

}  // namespace

int64_t PollSchedule::next_poll(int64_t step, double now, double wait) {
  int64_t ahead = 1;
  if (last_ && now > last_->second && step > last_->first) {
    const double each = (now - last_->second) / static_cast<double>(step - last_->first);
    ahead = static_cast<int64_t>(std::clamp(wait / each, 1.0, static_cast<double>(kStepsMax)));
  }
  last_ = {step, now};
  return step + ahead;
}

}  // namespace cpprun::snapshot

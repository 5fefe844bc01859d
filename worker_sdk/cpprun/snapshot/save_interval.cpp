#include "cpprun/snapshot/save_interval.hpp"

#include <algorithm>
#include <cmath>

namespace cpprun::snapshot {
namespace {

constexpr double kHour = 3600, kUnseen = 4 * kHour;
constexpr int64_t kStepsMax = 10'000;

}  // namespace

double best_interval(double cost, double between) {
  return std::min(kHour, std::max(10 * cost, std::sqrt(2 * cost * between)));
}

double time_between_failures(double seconds, int64_t failures) {
  return (seconds + kUnseen) / static_cast<double>(failures + 1);
}

int64_t PollSchedule::next_poll(int64_t step, double now, double interval) {
  int64_t ahead = 1;
  if (last_ && now > last_->second && step > last_->first) {
    const double each = (now - last_->second) / static_cast<double>(step - last_->first);
    const double wait = std::min(1.0, interval / 10);
    ahead = static_cast<int64_t>(std::clamp(wait / each, 1.0, static_cast<double>(kStepsMax)));
  }
  last_ = {step, now};
  return step + ahead;
}

}  // namespace cpprun::snapshot

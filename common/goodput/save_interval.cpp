#include "common/goodput/save_interval.hpp"

#include <algorithm>
#include <cmath>

namespace cpprun {
namespace {

constexpr double kHour = 3600, kUnseen = 4 * kHour;

}  // namespace

double best_save_interval(double cost, double between) {
  return std::min(kHour, std::max(10 * cost, std::sqrt(2 * cost * between)));
}

double time_between_rollbacks(double seconds, int64_t rollbacks) {
  return (seconds + kUnseen) / static_cast<double>(rollbacks + 1);
}

double time_until_poll(double left, double interval) {
  const double wait = left > 0 ? std::max(left, interval / 100) : interval / 10;
  return std::min(1.0, wait);
}

}  // namespace cpprun

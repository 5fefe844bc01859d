#include "agent/daemon/clocks.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace cpprun {
namespace {

int64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string format(WallTime time, const char* pattern) {
  time_t whole = time.microseconds / 1'000'000;
  tm local{};
  localtime_r(&whole, &local);
  std::array<char, 64> text{};
  size_t size = strftime(text.data(), text.size(), pattern, &local);
  return {text.data(), size};
}

}  // namespace

Instant boot_time() {
  return Instant::from_nanoseconds(read_clock(CLOCK_BOOTTIME));
}
WallTime wall_time() {
  return WallTime{read_clock(CLOCK_REALTIME) / 1000};
}

std::string local_stamp(WallTime time) {
  return format(time, "%Y-%m-%d_%H:%M:%S");
}

std::string local_clock(WallTime time) {
  std::array<char, 8> millis{};
  std::snprintf(millis.data(), millis.size(), ".%03d",
                static_cast<int>(time.microseconds / 1000 % 1000));
  return format(time, "%H:%M:%S") + millis.data();
}

}  // namespace cpprun

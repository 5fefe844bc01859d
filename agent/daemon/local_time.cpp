#include "agent/daemon/local_time.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace cpprun {
namespace {

std::string format(WallTime time, const char* pattern) {
  time_t whole = time.microseconds / 1'000'000;
  tm local{};
  localtime_r(&whole, &local);
  std::array<char, 64> text{};
  size_t size = strftime(text.data(), text.size(), pattern, &local);
  return {text.data(), size};
}

}  // namespace

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

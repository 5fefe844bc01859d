#include "rendezvous/client/store/deadline.hpp"

#include <poll.h>

#include <algorithm>

#include "common/limits/store.hpp"

namespace cpprun::worker {

Deadline after(Duration duration) {
  return Clock::now() + std::clamp(duration, Duration{}, limits::kStoreTimeoutMax);
}

bool poll_until(int fd, short events, Deadline deadline) {
  constexpr std::chrono::milliseconds kLongest{3'600'000};  // poll() takes an int
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    left = std::clamp(left, std::chrono::milliseconds{0}, kLongest);
    pollfd asked{fd, events, 0};
    int ready = ::poll(&asked, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;  // otherwise a signal or no memory, both temporary
    if (Clock::now() >= deadline) return false;
  }
}

}  // namespace cpprun::worker

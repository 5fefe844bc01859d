// Deadlines of blocking calls, and poll() until one. Internal to the worker SDK.
#pragma once

#include <chrono>

#include "common/time.hpp"

namespace cpprun::worker {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Now + duration, clamped to [0, one year].
Deadline after(Duration duration);

// Waits until `fd` has one of `events`, an error or its end. False: the deadline passed first.
// Polls at least once.
bool poll_until(int fd, short events, Deadline deadline);

}  // namespace cpprun::worker

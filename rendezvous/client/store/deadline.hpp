// Deadlines of blocking calls, and poll() until one. For the worker's own sources.
#pragma once

#include <chrono>

#include "common/time.hpp"

namespace cpprun::worker {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// From now on; negative counts as nothing, and a year is the longest.
Deadline after(Duration duration);

// Waits until `fd` has one of `events` (or an error, or its end). False: the deadline came first.
// Looks once, however late it is.
bool poll_until(int fd, short events, Deadline deadline);

}  // namespace cpprun::worker

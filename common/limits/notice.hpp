// Limits of the requests that cpprun sends to other programs: the notice of a failed job.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

inline constexpr size_t kUrlBytes = 2'000;  // as much as servers take
// The launcher has nothing else to do, but its scheduler waits for its end: at most three attempts
// within this time.
inline constexpr Duration kNoticeTimeout = std::chrono::seconds(15);
inline constexpr Duration kNoticeAttempt = std::chrono::seconds(5);
inline constexpr Duration kNoticePause = std::chrono::milliseconds(500);  // then twice as long
inline constexpr int kNoticeAttempts = 3;
inline constexpr size_t kReplyBytes = 4'096;  // of a reply; only its first line matters

}  // namespace cpprun::limits

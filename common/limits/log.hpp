// Limits of cpprun's own messages on stderr.
#pragma once

#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// Unread text that is kept; several times the longest failure summary.
inline constexpr size_t kLogPendingBytes = 256 * 1024;
// How long a launcher that ends by a signal waits for a reader of its messages.
inline constexpr Duration kLogFlushTimeout = 1s;

}  // namespace cpprun::limits

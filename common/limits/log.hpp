// Limits of what cpprun itself says on stderr.
#pragma once

#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kLogWaitingBytes =
    256 * 1024;  // while nobody reads; the longest failure summary fits several times
inline constexpr Duration kLogFlushTimeout =
    1s;  // for those of a launcher that was told to go by a signal

}  // namespace cpprun::limits

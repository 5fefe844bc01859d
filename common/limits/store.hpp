// Limits: TCPStore, served and asked.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kStoreKeyBytes = 8 * 1024;  // torch's own server allows the same
inline constexpr size_t kStoreValueBytes = 1ULL
                                           << 30;      // torch: 8 MiB; object collectives need more
inline constexpr size_t kStoreListItems = 128 * 1024;  // torch's own limit for multi commands
inline constexpr size_t kStoreCommandBytes = 2ULL
                                             << 30;  // a whole MULTI_SET, keys and values together
inline constexpr Duration kStoreConnectRetryFirst =
    1ms;  // a client's first back-off, doubled up to ...
inline constexpr Duration kStoreConnectRetryMax = 50ms;  // a store that starts is met this soon
inline constexpr Duration kStoreConnectTimeout =
    5s;  // one address is tried no longer at a time, so that a dead one does not hide the next
inline constexpr Duration kStoreReplyTimeout =
    2s;  // what follows a wait that ended with its timeout: a cancellation, or the value itself
inline constexpr Duration kStoreTimeoutMax =
    std::chrono::hours(24 * 365);  // longer ones are cut, so that sums fit

}  // namespace cpprun::limits

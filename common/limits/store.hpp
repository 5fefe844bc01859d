// Limits of the TCPStore, server and client.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kStoreKeyBytes = 8 * 1024;  // as torch's own server
inline constexpr size_t kStoreValueBytes = 1ULL
                                           << 30;      // torch: 8 MiB; object collectives need more
inline constexpr size_t kStoreListItems = 128 * 1024;  // torch's own limit for multi commands
inline constexpr size_t kStoreCommandBytes = 2ULL << 30;  // a MULTI_SET with its keys and values

// Memory of all stores of a server and of its connections' buffers, as a part of the machine's
// memory or of the cgroup's limit: the coordinator shares the process with the agent, and the
// machine with the workers.
inline constexpr size_t kStoreMemoryDivisor = 4;
inline constexpr size_t kStoreMemoryMax = 1ULL << 44;  // 16 TiB; of the option, so that sums fit
// Small values and keys that one reply copies.
inline constexpr size_t kStoreReplyBytes = 64 << 20;
// A reply that would copy more shares values from this size on instead of copying them. The longest
// list of smaller ones fits.
inline constexpr size_t kStoreSharedAtNeed = 512;
inline constexpr size_t kStoreKeyBytesLogged = 64;  // of a client's key; enough to recognise it

// A client's back-off, doubled from the first up to the longest. Short: it bounds how late a client
// finds a store that has just started.
inline constexpr Duration kStoreConnectRetryFirst = 1ms;
inline constexpr Duration kStoreConnectRetryMax = 50ms;
// Per address, so that a dead address does not hide the next.
inline constexpr Duration kStoreConnectTimeout = 5s;
// For the reply after a wait that timed out: a cancellation, or the value itself.
inline constexpr Duration kStoreReplyTimeout = 2s;
inline constexpr Duration kStoreTimeoutMax = std::chrono::hours(24 * 365);  // so that sums fit

}  // namespace cpprun::limits

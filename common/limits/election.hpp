// Limits of the election of a coordinator through etcd (docs/protocol.md, R18).
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// How often an agent without a leader asks etcd for one.
inline constexpr Duration kLeaderPollInterval = 200ms;
inline constexpr Duration kElectionBackOff = 1s;  // after etcd refused; a quick retry cannot help
inline constexpr Duration kEtcdResponseTimeout = 1s;  // then another member is asked
// A leader renews its lease this often, or each 1/20 of a shorter lease.
inline constexpr Duration kLeaseRenewInterval = 250ms;
// An agent with a short worker lease pings more often, but not sooner than this after a pong.
inline constexpr Duration kPingIntervalMin = 20ms;
// A new coordinator waits this long for the node of the former one; other nodes get their lease.
inline constexpr Duration kHostLossDelay = 500ms;
// A leader that must stop waits this long for the other nodes' workers to end, so that it can
// revoke its lease.
inline constexpr Duration kLeaderLeaveTimeout = 2s;
// Size of a key's value. cpprun writes less than 40 KiB, most of it a failure summary.
inline constexpr size_t kElectionValueBytes = 256 * 1024;

}  // namespace cpprun::limits

// Limits of the election of a coordinator through etcd (docs/protocol.md, R18), and of the etcd
// client.
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

// The client.
// etcd refuses requests above 1.5 MiB, and a job stores far less.
inline constexpr size_t kEtcdBodyBytes = size_t{1} << 20;
inline constexpr size_t kEtcdHeaderBytes = 16 * 1024;
// Header, body and the chunk headers between them.
inline constexpr size_t kEtcdReplyBytes = kEtcdBodyBytes + kEtcdHeaderBytes + 64 * 1024;
inline constexpr size_t kEtcdEndpoints = 16;  // in --rdzv-endpoint
inline constexpr size_t kEtcdCalls = 16;      // at one time; further calls are refused, not queued
inline constexpr size_t kEtcdIdleConnections = 2;  // connections kept for later calls
// Then the client tries another member, if there is one.
inline constexpr Duration kEtcdConnectTimeout = std::chrono::milliseconds(400);
// To log in: etcd hashes passwords slowly, on purpose.
inline constexpr Duration kEtcdLoginTimeout = std::chrono::seconds(5);
// The first request of all: it includes the search for a member that answers.
inline constexpr Duration kEtcdRetryTimeout = std::chrono::seconds(10);
inline constexpr Duration kEtcdRetryInterval = std::chrono::milliseconds(500);
inline constexpr Duration kEtcdLeaveTimeout = std::chrono::seconds(2);  // to revoke the lease

}  // namespace cpprun::limits

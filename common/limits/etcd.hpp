// Limits of the etcd client, in bytes and in time.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

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

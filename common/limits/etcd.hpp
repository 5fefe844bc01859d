// Limits: what etcd may cost a launcher, in bytes and in time.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

// etcd itself takes no request above 1.5 MiB, and what a job keeps there is far smaller.
inline constexpr size_t kEtcdBodyBytes = size_t{1} << 20;
inline constexpr size_t kEtcdHeaderBytes = 16 * 1024;
// Chunk headers and the like, beside header and body.
inline constexpr size_t kEtcdReplyBytes = kEtcdBodyBytes + kEtcdHeaderBytes + 64 * 1024;
inline constexpr size_t kEtcdEndpoints = 16;  // that are named in --rdzv-endpoint
inline constexpr size_t kEtcdCalls = 16;      // at one time; more are refused, not queued
inline constexpr size_t kEtcdIdle = 2;        // connections kept for the calls that follow
// A member that can't be reached by then is passed over, if there are others.
inline constexpr Duration kEtcdConnect = std::chrono::milliseconds(400);
// To log in: members take their time over passwords, more than a question has.
inline constexpr Duration kEtcdLogin = std::chrono::seconds(5);
// The first question of all: any member, and what it takes to find one.
inline constexpr Duration kEtcdRetryTimeout = std::chrono::seconds(10);
inline constexpr Duration kEtcdRetryInterval = std::chrono::milliseconds(500);
inline constexpr Duration kEtcdLeaveTimeout =
    std::chrono::seconds(2);  // to give up what we lead by

}  // namespace cpprun::limits

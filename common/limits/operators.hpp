// Limits: operators' tools and the agent's socket for them.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kAdminConnections = 32;  // to one agent at a time
inline constexpr size_t kAdminParameters = 32;   // of one question
inline constexpr size_t kAdminParameterBytes = 4 * 1024;
inline constexpr size_t kAdminReplyBytes = 4 << 20;   // 4,096 workers of some 500 bytes, twice
inline constexpr Duration kAdminRequestTimeout = 2s;  // who has connected has asked by then
inline constexpr Duration kAdminReplyTimeout = 60s;   // stacks of a big node take a while

// Admin commands over TCP.
inline constexpr size_t kAdminTokenBytes = 16;         // shorter ones can be guessed
inline constexpr size_t kAdminChallengesPending = 64;  // nonces that wait for their proof
inline constexpr size_t kAdminFailuresKept = 1'024;    // addresses that have just been wrong
inline constexpr Duration kAdminNonceLifetime = 10s;   // a tool answers at once
inline constexpr Duration kAdminFailureDelay = 1s;     // until the next try from the same address

}  // namespace cpprun::limits

// Limits of admin commands and of the agent's admin socket.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kAdminConnections = 32;  // to one agent at a time
inline constexpr size_t kAdminParameters = 32;   // of one request
inline constexpr size_t kAdminParameterBytes = 4 * 1024;
inline constexpr size_t kAdminReplyBytes = 4 << 20;   // twice 4,096 workers of some 500 bytes
inline constexpr Duration kAdminRequestTimeout = 2s;  // from connection to request
inline constexpr Duration kAdminReplyTimeout = 60s;  // collecting a big node's stacks takes a while

// Admin commands over TCP.
inline constexpr size_t kAdminTokenBytes = 16;         // shorter tokens can be guessed
inline constexpr size_t kAdminChallengesPending = 64;  // nonces without an answer yet
inline constexpr size_t kAdminFailuresKept = 1'024;    // addresses that have just failed
inline constexpr Duration kAdminNonceLifetime = 10s;   // a tool answers at once
inline constexpr Duration kAdminFailureDelay = 1s;     // until the next try from the same address

}  // namespace cpprun::limits

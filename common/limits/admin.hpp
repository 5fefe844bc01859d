// Limits of admin commands, of the agent's admin socket, and of `cpprunctl doctor`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

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
inline constexpr size_t kAdminChallengesOfPeer = 16;   // of them for one address: others get some
inline constexpr size_t kAdminFailuresKept = 1'024;    // addresses that have just failed
inline constexpr Duration kAdminNonceLifetime = 10s;   // a tool answers at once
inline constexpr Duration kAdminFailureDelay = 1s;     // until the next try from the same address

// cpprunctl doctor.
inline constexpr Duration kProbeConnectTimeout = 2s;  // per address of an endpoint
inline constexpr size_t kProbeAddresses = 8;

// Checks between nodes. Up to this many nodes check all pairs; of more, each checks so many others.
inline constexpr int64_t kDoctorNodes = 64;
inline constexpr Duration kDoctorConnectTimeout = 3s;  // to another node
inline constexpr Duration kDoctorPairTimeout = 20s;    // all checks of one pair
// The throughput test ends at whichever limit it reaches first.
inline constexpr Duration kDoctorThroughputDuration = 500ms;
inline constexpr size_t kDoctorThroughputBytes = 64 << 20;
inline constexpr int kDoctorEchoes = 20;               // round trips for latency and clock offset
inline constexpr size_t kDoctorCardBytes = 64 * 1024;  // one node's description for the others

}  // namespace cpprun::limits

// Limits: the rendezvous server.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kControlFrameBytes =
    64 * 1024;  // a world for one agent is below 4 KiB; 16 times that
inline constexpr int kControlFrameDepth =
    32;  // nested arrays/maps; a parser must not recurse further
inline constexpr Duration kSilentPeerTimeout =
    10s;  // a connection that never finished its first command
inline constexpr size_t kOutboxBytes =
    1ULL << 30;  // unread replies of one connection; then it is dropped
inline constexpr size_t kHttpHeaderBytes = 8 * 1024;  // a probe's request is below 1 KiB
inline constexpr Duration kAcceptPause =
    100ms;  // no memory for a new connection: try again after this long
inline constexpr size_t kConnections =
    60'000;  // below the usual hard limit of descriptors with room to spare
inline constexpr size_t kDescriptorsKept =
    256;  // of a lower limit, and no more than a quarter of it: for listeners, and for the agent
          // and its workers' output, which may live in the same process
inline constexpr Duration kRepeatLogInterval = 60s;  // the same refusal in the log
inline constexpr size_t kLogTextsKept = 64;  // different ones in that time; peers choose the words

}  // namespace cpprun::limits

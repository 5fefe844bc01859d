// Limits of TCP connections whose peer no longer answers: its machine has lost power, or the
// network between drops packets. The kernel checks this, so an idle process sleeps on.
#pragma once

#include <chrono>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// An idle connection is probed after this time. Many times a node lease, so that the coordinator
// reports a lost node first; short beside the minutes after which firewalls forget a connection.
inline constexpr Duration kKeepAliveIdle = 20s;
inline constexpr Duration kKeepAliveInterval = 10s;  // between two probes
inline constexpr int kKeepAliveProbes = 3;           // one or two may be lost on a bad network
// Sent bytes that a peer does not acknowledge, or does not make room for, for so long end the
// connection. The kernel alone would retry for 15 minutes. With this limit set, the kernel also
// ends an idle connection at this time instead of after the last probe.
inline constexpr Duration kTcpUserTimeout = 60s;

}  // namespace cpprun::limits

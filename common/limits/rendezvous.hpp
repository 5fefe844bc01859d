// Limits: times and sizes of the rendezvous protocol; facts of it stand in docs/protocol.md.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kHeartbeat = 1s;     // pings of an agent
inline constexpr Duration kNodeLease = 5s;     // silence after which a node is lost
inline constexpr Duration kNodeLeaseMin = 1s;  // below this a busy machine loses healthy nodes
inline constexpr Duration kDeathGrace =
    200ms;  // G: parent-death signals and the reaper process do their work
inline constexpr Duration kKillDuration =
    300ms;  // K: longest time from "KILL decided" to "worker gone"
inline constexpr int kClockDriftPercent = 2;  // how far two clocks' rates may differ
inline constexpr Duration kLastCall = 1s;  // quiet after which a first round starts with min nodes
inline constexpr Duration kLastCallMax = 30s;   // however many keep coming
inline constexpr Duration kJoinTimeout = 600s;  // waiting for a round in all (torchrun's default)
inline constexpr Duration kStaticTimeout =
    900s;  // the same for the static backend (torchrun's default)
inline constexpr Duration kScaleUpInterval = 30s;  // further growth is bundled this long
inline constexpr Duration kWaitReminderInterval =
    60s;  // "still waiting for nodes" is said this often
inline constexpr Duration kHelloTimeout =
    2s;  // a peer that has not welcomed us by then is no coordinator
inline constexpr Duration kReconnectFirst =
    50ms;  // first back-off of an agent's connection, doubled up to ...
inline constexpr Duration kReconnectMax = 1s;
inline constexpr Duration kAnnounceInterval =
    500ms;  // who has taken a job over knocks this often at the job's endpoint, to say so there
inline constexpr int kLookupsUnderWay =
    16;  // of names at one time: each has a thread that nothing can interrupt; an agent has one or
         // two, and some more where it asks etcd's members
inline constexpr int kNodesPerJob = 100'000;
inline constexpr size_t kFailureClocks =
    64;  // machines on which workers failed in one round, looked at for which came first
inline constexpr int kEndedJobs = 64;  // whose outcome a coordinator remembers
inline constexpr int kWorkersPerNode = 4'096;
inline constexpr size_t kAddressesPerNode = 64;
inline constexpr Duration kWireDurationMax =
    std::chrono::hours(24 * 365 * 30);       // no time on the wire is longer, so that sums fit
inline constexpr size_t kNameBytes = 1'024;  // run ids, roles, host names, addresses on the wire
inline constexpr size_t kVersionBytes = 64;  // of a program, as it says it
inline constexpr size_t kNodeKeyBytes = 64;  // twice what an agent draws
inline constexpr size_t kReasonBytes = 2 * 1024;  // what an agent says for people, and what ...
inline constexpr size_t kFailureSummaryBytes =
    4 * 1024;  // ... a failure summary makes of it and of a node's name

}  // namespace cpprun::limits

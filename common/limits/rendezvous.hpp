// Limits of the rendezvous protocol (docs/protocol.md), in time and size.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// Leases.
inline constexpr Duration kHeartbeat = 1s;     // pings of an agent
inline constexpr Duration kNodeLease = 5s;     // silence after which a node is lost
inline constexpr Duration kNodeLeaseMin = 1s;  // below this a busy machine loses healthy nodes
// G: time for parent-death signals and the reaper process.
inline constexpr Duration kDeathGrace = 200ms;
// K: longest time from the decision to kill until the worker is gone.
inline constexpr Duration kKillDuration = 300ms;
inline constexpr int kClockDriftPercent = 2;  // how far the rates of two clocks may differ

// Rounds.
// The first round starts with min nodes when no node has joined for this long ...
inline constexpr Duration kLastCall = 1s;
inline constexpr Duration kLastCallMax = 30s;  // ... or at the latest after this long.
// The first round waits this long for nodes that the scheduler starts as well: Slurm starts the
// tasks of a step within seconds, unless a node is slow or lost.
inline constexpr Duration kExpectedNodesWait = 30s;
inline constexpr Duration kJoinTimeout = 600s;    // waiting for a round (torchrun's default)
inline constexpr Duration kStaticTimeout = 900s;  // the same for the static backend, as torchrun
// With --on-repeat=stop so many restarts in a row without progress end the job. One or two may meet
// the same bad moment, such as a file server that restarts; NVRx stops after three as well.
inline constexpr int64_t kFruitlessRestarts = 3;
// --restart-backoff. A round that a failure or a loss ends within kQuickRound of its start, without
// progress, is one of a storm: imports and the first step of most programs fit into it. The delay
// is doubled so often at most, and never longer than kRestartBackoffMax (as the back-off of
// Kubernetes), which is below the join timeout.
inline constexpr Duration kQuickRound = 60s;
inline constexpr int kRestartBackoffDoublings = 5;
inline constexpr Duration kRestartBackoffMax = 300s;
// Nodes that join within this time enlarge the job together.
inline constexpr Duration kScaleUpInterval = 30s;
inline constexpr Duration kWaitReminderInterval = 60s;  // between "still waiting for nodes"

// Connections.
inline constexpr Duration kHelloTimeout = 2s;  // a peer without a hello by then is no coordinator
// An agent's back-off between connection attempts, doubled from the first up to the longest.
inline constexpr Duration kReconnectFirst = 50ms;
inline constexpr Duration kReconnectMax = 1s;
// cpprunctl rendezvous-client: until a coordinator has answered for the first time, as torch's
// store client waits; and the longest line with a request, whose only long part is a reason.
inline constexpr Duration kFirstConnectTimeout = 60s;
inline constexpr size_t kRendezvousLineBytes = 64 << 10;
// How often a standby coordinator that took over announces itself at the job's endpoint.
inline constexpr Duration kAnnounceInterval = 500ms;
// After a lease, in which the standby takes the job over: its announcement may need some attempts.
inline constexpr Duration kRedirectTimeout = 4 * kAnnounceInterval;
// Name look-ups at one time. Each has a thread that cannot be interrupted. An agent needs one or
// two, and some more for etcd's members.
inline constexpr int kLookupsUnderWay = 16;

// Ports of coordinators that the launcher chooses itself (Slurm, --hosts): below those that Linux
// gives to outgoing connections.
inline constexpr int kChosenPortFirst = 10'000;
inline constexpr int kChosenPorts = 20'000;
// Ports that follow from a Slurm step, in the order in which hosts and agents try them: so many
// jobs with the same ports can share a node. More only make the search of a lost coordinator
// longer.
inline constexpr int kDerivedPorts = 8;

// Sizes.
inline constexpr int kNodesPerJob = 100'000;
// SLURM_STEP_NODELIST: the names of kNodesPerJob nodes, compressed, are shorter.
inline constexpr size_t kNodeListBytes = 64 * 1024;
inline constexpr size_t kShownListBytes = 120;  // of a malformed list in a message
// Machines with failed workers in one round that are compared to find the root cause.
inline constexpr size_t kFailureClocks = 64;
// Jobs that one coordinator leads at a time. Each has up to two listening sockets for its stores,
// of two descriptors each; the usual soft limit of descriptors is 1,024, and anybody may begin a
// job.
inline constexpr int kJobsPerServer = 128;
inline constexpr int kEndedJobs = 64;  // results of ended jobs that a coordinator keeps
inline constexpr int kWorkersPerNode = 4'096;
inline constexpr size_t kAddressesPerNode = 64;
inline constexpr Duration kWireDurationMax =
    std::chrono::hours(24 * 365 * 30);       // of any duration on the wire, so that sums fit
inline constexpr size_t kNameBytes = 1'024;  // run ids, roles, host names, addresses on the wire
inline constexpr size_t kVersionBytes = 64;  // a program's version text
inline constexpr size_t kNodeKeyBytes = 64;  // twice the size of an agent's key
// An agent's reason for people, and the failure summary made of it and of a node's name.
inline constexpr size_t kReasonBytes = 2 * 1024;
inline constexpr size_t kFailureSummaryBytes = 4 * 1024;
// Hosts of which the coordinator keeps the faults. Agents report them to the next coordinator, so
// all of them fit into a control frame with the rest of a registration.
inline constexpr size_t kHostRecords = 64;
inline constexpr size_t kHostNameBytes = 320;    // of such a host: of a pod, '@', and a DNS name
inline constexpr size_t kHostReasonBytes = 160;  // why it is excluded; a line on a terminal

// --node-check.
inline constexpr Duration kNodeCheckTimeout = 30s;  // nvidia-smi takes seconds without persistence
inline constexpr Duration kNodeCheckTimeoutMax = 1h;  // the other nodes wait for the check
// A node whose check has failed repeats it: a full disk may be empty again.
inline constexpr Duration kNodeCheckRetryInterval = 60s;
// A spare repeats it: it must not be found bad only when it is needed. A check may take seconds of
// a GPU that others use.
inline constexpr Duration kSpareCheckInterval = 300s;
inline constexpr size_t kNodeCheckLineBytes = 512;          // of the last line of its output
inline constexpr size_t kNodeCheckOutputBytes = 64 * 1024;  // that is kept to find that line

// --link-check. A link that does not carry the data in this time is no use for training: with 16
// MiB each way, that is 3 MB/s.
inline constexpr Duration kLinkCheckTimeout = 10s;
inline constexpr Duration kLinkCheckReplyWait = 5s;  // longer, for the report of the result
inline constexpr int64_t kLinkCheckMiBMax = 1024;    // 10 s at 2 Gbit/s
// Nodes that come while the links are checked lead to another check of all, so many times.
inline constexpr int64_t kLinkCheckPasses = 3;
// A pair so much slower than the median is slow. Pairs that share a switch differ by less.
inline constexpr double kSlowLinkFactor = 3;
inline constexpr size_t kLinksForMedian = 3;
inline constexpr size_t kLinkCheckConnections = 64;  // at once, at one node

// --exclude-hook. A command of a scheduler takes seconds, and one at a time runs.
inline constexpr Duration kExcludeHookTimeout = 60s;
// The end of the agent waits for them: a job often ends because of the exclusion.
inline constexpr Duration kExcludeHookEndTimeout = 65s;

}  // namespace cpprun::limits

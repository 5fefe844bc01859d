// Every limit and default of the house, each with its reason. All are per process unless said
// otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// --- the rendezvous server
inline constexpr size_t kControlFrameBytes =
    64 * 1024;  // a world for one agent is below 4 KiB; 16 times that
inline constexpr int kControlFrameDepth =
    32;  // nested arrays/maps; a parser must not recurse further
inline constexpr Duration kSilentPeer = 10s;  // a connection that never finished its first command
inline constexpr size_t kOutboxBytes =
    1ULL << 30;  // unread replies of one connection; then it is dropped
inline constexpr size_t kHttpHeaderBytes = 8 * 1024;  // a probe's request is below 1 KiB
inline constexpr Duration kAcceptPause =
    100ms;  // no memory for a new connection: try again after this long
inline constexpr size_t kConnections =
    60'000;  // below the usual hard limit of descriptors with room to spare

// --- TCPStore
inline constexpr size_t kStoreKeyBytes = 8 * 1024;  // torch's own server allows the same
inline constexpr size_t kStoreValueBytes = 1ULL
                                           << 30;      // torch: 8 MiB; object collectives need more
inline constexpr size_t kStoreListItems = 128 * 1024;  // torch's own limit for multi commands
inline constexpr size_t kStoreCommandBytes = 2ULL
                                             << 30;  // a whole MULTI_SET, keys and values together
inline constexpr Duration kStoreDialFirst = 1ms;     // a client's first back-off, doubled up to ...
inline constexpr Duration kStoreDialMax = 50ms;      // a store that starts is met this soon
inline constexpr Duration kStoreDialTakes =
    5s;  // one address is tried no longer at a time, so that a dead one does not hide the next
inline constexpr Duration kStoreAnswerTakes =
    2s;  // what follows a wait that ended with its timeout: a cancellation, or the value itself
inline constexpr Duration kStoreTimeoutMax =
    std::chrono::hours(24 * 365);  // longer ones are cut, so that sums fit

// --- rendezvous times (facts of the protocol: docs/protocol.md)
inline constexpr Duration kHeartbeat = 1s;  // pings of an agent
inline constexpr Duration kLease = 5s;      // silence after which a node is lost
inline constexpr Duration kLeaseMin = 1s;   // below this a busy machine loses healthy nodes
inline constexpr Duration kDeathGrace =
    200ms;  // G: parent-death signals and the guardian do their work
inline constexpr Duration kKillTakes =
    300ms;  // K: longest time from "KILL decided" to "worker gone"
inline constexpr int kClockDriftPercent = 2;  // how far two clocks' rates may differ
inline constexpr Duration kLastCall = 1s;  // quiet after which a first round starts with min nodes
inline constexpr Duration kLastCallMax = 30s;   // however many keep coming
inline constexpr Duration kJoinTimeout = 600s;  // waiting for a round in all (torchrun's default)
inline constexpr Duration kStaticTimeout =
    900s;  // the same for the static backend (torchrun's default)
inline constexpr Duration kScaleUpInterval = 30s;  // further growth is bundled this long
inline constexpr Duration kSayWaiting = 60s;       // "still waiting for nodes" is said this often
inline constexpr Duration kHelloTimeout =
    2s;  // a peer that has not welcomed us by then is no coordinator
inline constexpr Duration kReconnectFirst =
    50ms;  // first back-off of an agent's connection, doubled up to ...
inline constexpr Duration kReconnectMax = 1s;
inline constexpr int kNodesPerJob = 100'000;
inline constexpr size_t kFailureClocks =
    64;  // machines on which workers failed in one round, looked at for which came first
inline constexpr int kEndedJobs = 64;  // whose outcome a coordinator remembers
inline constexpr int kWorkersPerNode = 4'096;
inline constexpr size_t kAddressesPerNode = 64;
inline constexpr Duration kWireDuration =
    std::chrono::hours(24 * 365 * 30);       // no time on the wire is longer, so that sums fit
inline constexpr size_t kNameBytes = 1'024;  // run ids, roles, host names, addresses on the wire

// --- snapshots between agents
inline constexpr Duration kSnapshotScanTakes =
    10s;  // a folder that does not answer (a network file system that is gone) holds no node up
inline constexpr Duration kSnapshotStalls =
    10s;  // a fetch without a byte for so long has failed; longer than a lease, so that the loss of
          // the other node is told before
inline constexpr Duration kSnapshotQueue = 600s;  // behind others who fetch from the same node
inline constexpr uint64_t kSnapshotBytesPerSecond =
    64 * 1024;  // a fetch that is slower on the whole has failed
inline constexpr uint64_t kSnapshotFileBytes = uint64_t{1} << 44;  // of one fetched file
inline constexpr Duration kSnapshotSlow = 2s;       // a fetch that takes longer is worth a line
inline constexpr size_t kSnapshotPeers = 8;         // fetching from one node at a time
inline constexpr size_t kSnapshotConnections = 64;  // with those that must wait, and strangers
inline constexpr Duration kSnapshotWords = 2s;      // who fetches says what within this time

// --- agent
inline constexpr Duration kStopGrace = 30s;  // TERM to KILL; a job saves its snapshot in this time
inline constexpr Duration kSweepGrace = 5s;  // the same for what a worker left behind
inline constexpr Duration kOutputAfterExit =
    1s;  // a stranger may hold the pipe: wait this long for its end
inline constexpr Duration kPartialLine = 100ms;  // a line without end is shown after this long
inline constexpr size_t kLineBytes = 64 * 1024;  // longer lines are shown in pieces of this size
inline constexpr size_t kOutputBufferBytes =
    256 * 1024;  // per stream; a slow console slows its writer from then on
inline constexpr size_t kLastLines = 20;  // kept of each worker's stderr for the verdict
inline constexpr Duration kStartUp =
    10s;  // a worker that ends sooner has not begun its work: a start-up failure
inline constexpr Duration kLastLinesTake =
    200ms;                                    // a blocked output holds up a worker's end no longer
inline constexpr Duration kEndingTakes = 1s;  // a host that goes waits this long for what it killed
inline constexpr Duration kGuardianTakes = 1s;  // how long it looks for processes of a dead agent
inline constexpr size_t kErrorFileBytes = 1 << 20;  // a larger error file is cut in the summary
inline constexpr uint64_t kEventsBytes =
    256 << 20;  // of events.jsonl; a worker that commits without end must not fill the disk
inline constexpr size_t kSummaryTextBytes = 16 * 1024;  // per worker on the wire and in the summary

// --- the doctor
inline constexpr Duration kProbeConnects = 2s;  // per address of an endpoint
inline constexpr size_t kProbeAddresses = 8;

// --- hangs: no limit may be too short for a long import, validation or snapshot
inline constexpr Duration kHangLook = 60s;         // an idle agent is woken by looks no more often
inline constexpr Duration kHangLookMin = 100ms;    // nor this often, however short the timeout
inline constexpr Duration kHangStopped = 30s;      // auto: somebody may stop a worker for a moment
inline constexpr Duration kHangQuiet = 300s;       // auto: all of a node, in training
inline constexpr Duration kHangQuietLong = 1800s;  // auto: in any other phase
inline constexpr Duration kEvidenceTakes = 30s;    // for all workers of a node together
inline constexpr Duration kEvidenceToolTakes = 10s;  // for one tool at one worker
inline constexpr Duration kOwnStackTakes = 2s;       // for a worker to write its own stack
inline constexpr size_t kEvidenceBytes = 64 * 1024;  // of one worker's stack
inline constexpr size_t kProcessesLookedAt = 256;    // of one worker's descendants

// --- torch's file timers
inline constexpr size_t kFileTimers = 4'096;     // of one node; a worker has one or two
inline constexpr Duration kFileTimerLook = 60s;  // the wall clock may be set while one runs

// --- the channel between an agent and its workers
inline constexpr size_t kWorkerReportBytes = 4096;     // a worker's own words on why it ends
inline constexpr size_t kWorkerConnections = 4;        // of one worker: it, and children of its own
inline constexpr size_t kWorkerConnectionsInAll = 64;  // the same over a whole round
inline constexpr int kWorkerMessages =
    64;  // of one connection in kChannelPause; a save takes two, and its disk a millisecond
inline constexpr int kWorkerLastMessages =
    1'024;  // read after a worker's end; its socket holds a few hundred
inline constexpr int kArenaMemoryPercent =
    50;  // of the usable memory, for all arenas of a node: training needs the rest
inline constexpr int kChannelBurst =
    64;  // connections turned away at a time; then the other business of the agent
inline constexpr Duration kChannelPause =
    100ms;  // after a burst, or without descriptors: no busier than this however many knock
inline constexpr Duration kAgentAnswers = 2s;  // a worker waits this long for its page, once
inline constexpr Duration kLeaveTakes =
    10s;  // and so long for other answers: a busy machine must not cost a snapshot

// --- operators' tools
inline constexpr size_t kOperatorConnections = 32;  // to one agent at a time
inline constexpr size_t kOperatorWords = 32;        // of one question
inline constexpr size_t kOperatorWordBytes = 4 * 1024;
inline constexpr size_t kOperatorAnswerBytes = 4 << 20;  // 4,096 workers of some 500 bytes, twice
inline constexpr Duration kOperatorAsks = 2s;            // who has connected has asked by then
inline constexpr Duration kOperatorAnswers = 60s;        // stacks of a big node take a while

// --- snapshots
inline constexpr Duration kSnapshotOthersWrite =
    600s;  // a rank waits so long for what another one writes; then this snapshot is given up
inline constexpr size_t kSnapshotsTold = 8;  // newest ones that a folder is asked for
inline constexpr size_t kSnapshotFolderEntries =
    100'000;  // a folder with more is none that snapshots are kept in
inline constexpr size_t kManifestBytes = 16 << 20;  // 100,000 ranks of some 60 bytes each, and room
inline constexpr size_t kManifestFiles = 200'000;
inline constexpr int kManifestDepth = 32;     // nested arrays and objects
inline constexpr Duration kDraftYoung = 10s;  // its writer may not have locked it yet
inline constexpr Duration kDraftAbandoned =
    std::chrono::hours(24);  // unchanged so long: the machine that wrote it is gone
inline constexpr size_t kArchiveRecords = 1'000'000;  // storages of one file; a big model: 10,000
inline constexpr size_t kArchiveDirectoryBytes = 256 << 20;
inline constexpr size_t kArchivePickleBytes = 256 << 20;

// --- faults on demand
inline constexpr size_t kFaultPlanBytes = 1 << 20;
inline constexpr size_t kFaultsPerPlan = 256;
inline constexpr int64_t kFaultStrikes = 10'000;     // of one fault in a job
inline constexpr size_t kFaultsInAccount = 100'000;  // strikes; what comes after is not told
inline constexpr size_t kFaultQuestions = 256;       // of one node, unanswered

}  // namespace cpprun::limits

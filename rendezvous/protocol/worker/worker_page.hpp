// WorkerPage: the memory that an agent and one of its workers share. The worker writes how far it
// is, the agent writes what it wishes; both only ever load and store single fields, so that neither
// waits for the other.
//
// A page made by the agent begins as zeros but for its first three fields. Either side may be
// hostile to the other: nobody trusts a value further than its type. Fields are only ever added, in
// the reserved room and under a new version.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cpprun {

inline constexpr uint32_t kWorkerPageMagic = 0x50525043;  // "CPRP"
inline constexpr uint32_t kWorkerPageVersion = 4;         // 4: the same fields as 3
// On this signal a worker that has a stack file writes its stack into it (a real-time signal that
// libraries leave alone).
inline constexpr int kStackSignal = 50;

struct WorkerPage {
  // Set before the page is given out, and never again.
  uint32_t magic = kWorkerPageMagic;
  uint32_t version = kWorkerPageVersion;
  uint32_t bytes = 0;  // of the whole page
  uint32_t reserved = 0;

  // The worker's.
  alignas(64) std::atomic<int64_t> step{0};
  std::atomic<int64_t> collectives{0};
  std::atomic<int64_t> heartbeat_ns{0};  // CLOCK_MONOTONIC of the last heartbeat; 0: none yet
  std::atomic<uint32_t> phase{0};        // worker::Phase
  std::atomic<uint32_t> is_ready{0};
  std::atomic<uint32_t> can_save{0};  // from version 2: saves and ends when asked to stop
  // From version 3: 1 + the descriptor of a file of the worker's own, or 0. It writes its stack at
  // the end of that file when kStackSignal comes.
  std::atomic<uint32_t> stack_file{0};
  std::atomic<int64_t> step_ns{0};  // what a step takes, a mean of the last few; 0: not known

  // The agent's.
  alignas(64) std::atomic<uint32_t> wants_stop{0};

  // Steps of committed snapshots; 0: none. The newest that this worker has told, and the newest
  // that any worker of the node has (written by the agent).
  alignas(64) std::atomic<int64_t> snapshot_written{0};
  alignas(64) std::atomic<int64_t> snapshot_newest{0};

  alignas(64) unsigned char room[4096 - 5 * 64]{};
};

static_assert(sizeof(WorkerPage) == 4096, "one page of memory, whatever the compiler");
static_assert(std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

}  // namespace cpprun

// WorkerPage: memory shared by an agent and one of its workers. The worker writes its progress, the
// agent its requests. Both only load and store single fields, so neither waits for the other.
//
// The agent creates a page of zeros except for its first three fields. Either side may be hostile:
// neither trusts a value beyond its type. New versions only add fields, in the reserved room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cpprun {

inline constexpr uint32_t kWorkerPageMagic = 0x50525043;  // "CPRP"
inline constexpr uint32_t kWorkerPageVersion = 5;         // 4 and 5: the same fields as 3
// On this signal a worker with a stack file writes its stack into that file. Real-time signal 50 is
// unused by libraries.
inline constexpr int kStackSignal = 50;

struct WorkerPage {
  // Constant once the worker has the page.
  uint32_t magic = kWorkerPageMagic;
  uint32_t version = kWorkerPageVersion;
  uint32_t bytes = 0;  // of the whole page
  uint32_t reserved = 0;

  // Written by the worker.
  alignas(64) std::atomic<int64_t> step{0};
  std::atomic<int64_t> collectives{0};
  std::atomic<int64_t> heartbeat_ns{0};  // CLOCK_MONOTONIC of the last heartbeat; 0: none yet
  std::atomic<uint32_t> phase{0};        // worker::Phase
  std::atomic<uint32_t> is_ready{0};
  std::atomic<uint32_t> can_save{0};  // from version 2: saves and exits on a stop request
  // From version 3: 1 + the number of a descriptor in the worker, or 0. On kStackSignal the worker
  // appends its stack to that file.
  std::atomic<uint32_t> stack_file{0};
  std::atomic<int64_t> step_ns{0};  // mean duration of the last few steps; 0: unknown

  // Written by the agent.
  alignas(64) std::atomic<uint32_t> wants_stop{0};

  // Steps of committed snapshots; 0: none. snapshot_written: the newest that this worker reported.
  // snapshot_newest: the newest of any worker of the node, written by the agent.
  alignas(64) std::atomic<int64_t> snapshot_written{0};
  alignas(64) std::atomic<int64_t> snapshot_newest{0};

  alignas(64) unsigned char room[4096 - 5 * 64]{};
};

static_assert(sizeof(WorkerPage) == 4096, "one page of memory, whatever the compiler");
static_assert(std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

}  // namespace cpprun

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
inline constexpr uint32_t kWorkerPageVersion = 8;         // 4, 7: the fields of the version before
// On this signal a worker with a stack file writes its stack into that file. Real-time signal 50 is
// unused by libraries.
inline constexpr int kStackSignal = 50;

// A program names at most so many sections; those beyond are in no section.
inline constexpr size_t kWorkerSections = 16;

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
  // From version 8: 1 if the heartbeats come from calls that a program may make rarely, such as
  // those of a snapshot. They show progress, but a long time without one shows no hang.
  std::atomic<uint32_t> progress_only{0};

  // Written by the agent.
  alignas(64) std::atomic<uint32_t> wants_stop{0};

  // Steps of committed snapshots; 0: none. snapshot_written: the newest that this worker reported.
  // snapshot_newest: the newest of any worker of the node, written by the agent.
  alignas(64) std::atomic<int64_t> snapshot_written{0};
  alignas(64) std::atomic<int64_t> snapshot_newest{0};

  // From version 5, written by the worker: how long training has waited for saves.
  alignas(64) std::atomic<int64_t> saved_ns{0};
  // From version 6, written by the worker: sums over the steps of which it knows its own compute
  // time, without what it waited for other ranks.
  std::atomic<int64_t> compute_ns{0};
  std::atomic<int64_t> compute_steps{0};

  // From version 6, written by the worker. `section`: 1 + the place of the section that it is in,
  // 0: in none; `section_since_ns`: CLOCK_MONOTONIC of its begin. `trace_request`: 1 + the number
  // of a pipe's descriptor in the worker, 0: none; for each byte in it the worker appends torch's
  // flight-recorder dump to the file of descriptor `trace_file` - 1.
  alignas(64) std::atomic<uint32_t> section{0};
  std::atomic<uint32_t> trace_request{0};
  std::atomic<int64_t> section_since_ns{0};
  std::atomic<uint32_t> trace_file{0};
  // A section that the worker has named; it writes the name before any number that refers to it,
  // and never changes it.
  struct Section {
    char name[40]{};                     // ends with a zero byte unless it fills the field
    std::atomic<int64_t> longest_ns{0};  // of those that have ended in this round
    std::atomic<int64_t> limit_ns{0};    // given by the program; 0: none
    std::atomic<int64_t> ended{0};       // how often it has ended in this round
  };
  alignas(64) Section sections[kWorkerSections];

  unsigned char room[4096 - 7 * 64 - kWorkerSections * 64]{};
};

static_assert(sizeof(WorkerPage) == 4096, "one page of memory, whatever the compiler");
static_assert(std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

}  // namespace cpprun

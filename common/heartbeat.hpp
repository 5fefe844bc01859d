// Heartbeat: the progress that a worker publishes in the page that it shares with its agent
// (rendezvous/protocol/worker/worker_page.hpp). The values are unchecked.
#pragma once

#include <cstdint>

#include "common/time.hpp"

namespace cpprun {

// Values of Heartbeat::phase: worker::Phase of the SDK (cpprun/worker/agent_link.hpp).
inline constexpr uint32_t kStartingPhase = 0, kReadyPhase = 1, kTrainingPhase = 2,
                          kEvaluatingPhase = 3, kSavingPhase = 4;

struct Heartbeat {
  int64_t step = 0;
  int64_t collectives = 0;
  uint32_t phase = 0;  // one of the above, or any other number
  Duration age{};
  Duration step_takes{};  // zero: unknown
  Duration saved{};       // in this round training has waited so long for saves
  // In this round, over the steps for which the worker has reported it: the time in which it
  // computed and waited for no other rank.
  Duration computed{};
  int64_t computed_steps = 0;
  bool is_progress_only = false;  // a long time without a heartbeat shows no hang
};

// How far a worker's start has come, by its messages: it is connected to its agent; it has restored
// its state; it has finished its first step; or it counts steps and ended before the first one.
enum class WorkerMilestone { Connected, Resumed, Stepped, EndedBeforeStep };

}  // namespace cpprun

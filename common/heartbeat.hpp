// Heartbeat: what a worker says of itself in the page that it shares with its agent, as of one
// moment. Nothing of it is checked. Pages: rendezvous/protocol/worker/worker_page.hpp.
#pragma once

#include <cstdint>

#include "common/time.hpp"

namespace cpprun {

// How far a worker said it was.
struct Heartbeat {
  int64_t step = 0;
  int64_t collectives = 0;
  uint32_t phase = 0;  // worker::Phase; any number
  Duration age{};
  Duration step_takes{};  // zero: not known
};

// What a worker's messages say of its way to training: it talks to its agent; it has what it goes
// on from; it has made its first step; or it has ended, says its steps, and has made none.
enum class WorkerMilestone { Connected, Resumed, Stepped, EndedBeforeStep };

}  // namespace cpprun

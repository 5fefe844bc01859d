// WorkerObservation: a sample of a live worker, from /proc and from its own progress page
// (worker_page.hpp). agent/process takes it, agent/core detects hangs with it.
#pragma once

#include <cstdint>
#include <optional>

#include "common/heartbeat.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun {

struct WorkerObservation {
  enum class State {
    Going,    // runs, or sleeps interruptibly
    Blocked,  // sleeps in the kernel and cannot receive signals (D)
    Stopped,  // by a signal such as SIGSTOP (T)
    Traced,   // a debugger is attached
  };

  LocalRank local_rank;
  Rank rank;
  int pid = 0;
  State state = State::Going;
  std::optional<Heartbeat> beat;  // nullopt: the worker has not written one yet
  // Sums over the worker and its descendants. They may shrink when a descendant ends.
  Duration cpu{};
  uint64_t bytes = 0;  // read and written, output included
};

}  // namespace cpprun

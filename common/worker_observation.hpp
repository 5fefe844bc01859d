// WorkerObservation: what one look at a live worker shows, from outside (/proc) and by its own
// account (worker_page.hpp). Plain data; looked at by agent/process, judged by agent/core.
#pragma once

#include <cstdint>
#include <optional>

#include "common/heartbeat.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun {

struct WorkerObservation {
  enum class State {
    Going,    // runs, or sleeps as programs do
    Blocked,  // in the kernel, where no signal reaches it (D)
    Stopped,  // by SIGSTOP or the like (T)
    Traced,   // a debugger is attached
  };

  LocalRank local_rank;
  Rank rank;
  int pid = 0;
  State state = State::Going;
  std::optional<Heartbeat> beat;  // none: it has never sent one
  // Of it and its descendants since they began. Either may shrink when one of them ends.
  Duration cpu{};
  uint64_t bytes = 0;  // read and written, output included
};

}  // namespace cpprun

// WorkerObservation: a sample of a live worker, from /proc and from its own progress page
// (worker_page.hpp). agent/process takes it, agent/core detects hangs with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/heartbeat.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun {

// A section of its program that a worker has named, in this round.
struct SectionTimes {
  std::string name;
  Duration longest{};  // of those that have ended
  int64_t ended = 0;
  Duration limit{};  // given by the program; zero: none

  bool operator==(const SectionTimes&) const = default;
};

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
  std::vector<SectionTimes> sections{};
  std::optional<SectionTimes> section{};  // in which it is
  Duration section_age{};                 // since it entered that
  // Sums over the worker and its descendants. They may shrink when a descendant ends.
  Duration cpu{};
  uint64_t bytes = 0;  // read and written, output included
};

}  // namespace cpprun

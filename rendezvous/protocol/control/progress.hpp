// Progress of the workers, for the dashboard. Agents report it only while a browser shows the
// dashboard; no decision depends on it.
//
// The coordinator sends Watch, valid for a few seconds, to agents whose registration announced
// support. An agent whose workers send heartbeats sends Progress at most once a second, and only
// when a value changed. docs/protocol.md, "Progress".
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun::control {

// Coordinator to agent: report progress for this long. Zero: stop.
struct Watch {
  Duration lasts{};
};

// Agent to coordinator. Indexed by local rank, at most limits::kProgressWorkers; -1: unknown.
struct Progress {
  RoundNumber round;
  std::vector<int64_t> steps;
  std::vector<int64_t> step_us;  // duration of the last step, in microseconds
  bool operator==(const Progress&) const = default;
};

template <class V>
void fields(V&& v, Watch& m) {
  v("lasts_ns", m.lasts);
}
template <class V>
void fields(V&& v, Progress& m) {
  v("round", m.round);
  v("steps", m.steps);
  v("step_us", m.step_us);
}

inline const char* name_of(const Watch&) { return "watch"; }
inline const char* name_of(const Progress&) { return "progress"; }

}  // namespace cpprun::control

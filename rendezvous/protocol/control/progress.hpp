// How far workers are, told to the coordinator while somebody watches the dashboard, and only then:
// the control protocol's one exchange that no decision hangs on.
//
// A coordinator asks (`watch`) agents that said at registration that they understand it, for a few
// seconds at a time; an agent whose workers send heartbeats answers (`progress`) at most once a
// second, and only with news. docs/protocol.md, "Progress".
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun::control {

// Coordinator to agent: tell how far your workers are, for so long. Zero: no more.
struct Watch {
  Duration lasts{};
};

// Agent to coordinator. By local rank, at most limits::kProgressWorkers; -1: not known.
struct Progress {
  RoundNumber round;
  std::vector<int64_t> steps;
  std::vector<int64_t> step_us;  // what the last step took, in microseconds
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

inline const char* name_of(const Watch&) {
  return "watch";
}
inline const char* name_of(const Progress&) {
  return "progress";
}

}  // namespace cpprun::control

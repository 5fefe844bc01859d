// RankProgress: what the nodes of a job have reported of their workers, by global rank. It stays
// after the round, until a node reports from a later round: a failed job shows how far it came.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/node.hpp"
#include "rendezvous/coordinator/rounds/round.hpp"

namespace cpprun {

// -1: unknown. At most limits::kRanksShown ranks.
struct RankProgress {
  RoundNumber round;  // of the newest report; 0: no node has reported
  Instant at;         // receipt of the newest report
  std::vector<int64_t> steps;
  std::vector<int64_t> step_us;  // duration of the last step in microseconds

  // A report out of range, or of another round than that of the assignments, is ignored.
  void take(Instant now, const Round::Assignments& assignments, const Node& node,
            const control::Progress& report);
};

}  // namespace cpprun

// What nodes have reported of their workers, by global rank. Pure views of a Job.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/coordinator/job.hpp"

namespace cpprun {

// -1: unknown. At most limits::kRanksShown ranks.
struct RankProgress {
  RoundNumber round;
  std::vector<int64_t> steps;
  std::vector<int64_t> step_us;  // duration of the last step in microseconds
};
// Nothing while no node has reported progress in the running round.
std::optional<RankProgress> rank_progress(const Job& job);

// Where a rank of the newest round is.
struct RankLocation {
  const Node* node = nullptr;  // connected or not
  int64_t local_rank = 0;
};
// Nothing: no node of the job has that rank.
std::optional<RankLocation> place_of(const Job& job, int64_t rank);

}  // namespace cpprun

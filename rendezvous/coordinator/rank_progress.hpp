// What nodes have told of their workers, by global rank. Pure views of a Job.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/coordinator/job.hpp"

namespace cpprun {

// -1: not known. At most limits::kRanksShown ranks.
struct RankProgress {
  RoundNumber round;
  std::vector<int64_t> steps;
  std::vector<int64_t> step_us;  // what the last step took, in microseconds
};
// Nothing while nobody has told anything of the round that runs.
std::optional<RankProgress> rank_progress(const Job& job);

// Where a rank of the newest round is.
struct RankLocation {
  const Node* node = nullptr;  // in touch or not
  int64_t local_rank = 0;
};
// Nothing: no node has it.
std::optional<RankLocation> place_of(const Job& job, int64_t rank);

}  // namespace cpprun

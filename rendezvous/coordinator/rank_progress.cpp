#include "rendezvous/coordinator/rank_progress.hpp"

#include <algorithm>

#include "common/limits/dashboard.hpp"

namespace cpprun {

std::optional<RankProgress> rank_progress(const Job& job) {
  if (job.assignments().empty()) return std::nullopt;
  const auto size = static_cast<size_t>(
      std::clamp<int64_t>(job.world_size(), 0, static_cast<int64_t>(limits::kRanksShown)));
  RankProgress all{job.round(), std::vector<int64_t>(size, -1), std::vector<int64_t>(size, -1)};
  bool is_any = false;
  for (const auto& [incarnation, assignment] : job.assignments()) {
    const auto it = job.nodes().find(incarnation);
    if (it == job.nodes().end() || !it->second.progress) continue;
    const control::Progress& told = *it->second.progress;
    if (told.round != job.round()) continue;
    const auto base = static_cast<size_t>(assignment.base_rank);
    const auto room = size - std::min(size, base);
    const auto workers = static_cast<size_t>(it->second.facts.nproc);
    for (size_t i = 0; i < std::min({room, told.steps.size(), workers}); ++i) {
      all.steps[base + i] = told.steps[i];
      if (i < told.step_us.size()) all.step_us[base + i] = told.step_us[i];
      is_any = true;
    }
  }
  return is_any ? std::optional(std::move(all)) : std::nullopt;
}

std::optional<RankLocation> place_of(const Job& job, int64_t rank) {
  for (const auto& [incarnation, assignment] : job.assignments()) {
    const auto it = job.nodes().find(incarnation);
    if (it == job.nodes().end() || rank < assignment.base_rank) continue;
    const int64_t local_rank = rank - assignment.base_rank;
    if (local_rank < it->second.facts.nproc) return RankLocation{&it->second, local_rank};
  }
  return std::nullopt;
}

}  // namespace cpprun

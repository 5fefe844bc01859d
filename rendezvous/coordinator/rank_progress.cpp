#include "rendezvous/coordinator/rank_progress.hpp"

#include <algorithm>

#include "common/limits/dashboard.hpp"

namespace cpprun {

void RankProgress::take(Instant now, const Round::Assignments& assignments, const Node& node,
                        const control::Progress& report) {
  const auto member = assignments.find(node.id.incarnation);
  const size_t longest = std::max(report.steps.size(), report.step_us.size());
  if (member == assignments.end() || longest > limits::kProgressWorkers) return;
  const control::RankAssignment& assignment = member->second;
  if (report.round != assignment.round) return;
  if (round != report.round) {
    const auto size = static_cast<size_t>(
        std::clamp<int64_t>(assignment.world_size, 0, static_cast<int64_t>(limits::kRanksShown)));
    round = report.round;
    steps.assign(size, -1);
    step_us.assign(size, -1);
  }
  at = now;
  const auto base = static_cast<size_t>(assignment.base_rank);
  const auto space = steps.size() - std::min(steps.size(), base);
  const auto count = std::min({space, report.steps.size(), static_cast<size_t>(node.facts.nproc)});
  for (size_t i = 0; i < count; ++i) {
    steps[base + i] = report.steps[i];
    step_us[base + i] = i < report.step_us.size() ? report.step_us[i] : -1;
  }
}

}  // namespace cpprun

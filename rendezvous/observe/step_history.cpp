#include "rendezvous/observe/step_history.hpp"

#include <algorithm>
#include <vector>

#include "common/limits/dashboard.hpp"

namespace cpprun {

bool StepPoint::is_same_as(const StepPoint& other) const {
  return round == other.round && step == other.step && last == other.last &&
         median_us == other.median_us && slowest_us == other.slowest_us &&
         slowest_rank == other.slowest_rank;
}

StepPoint point_of(const RankProgress& progress) {
  StepPoint point;
  point.at = progress.at;
  point.round = progress.round;
  for (const int64_t step : progress.steps) {
    if (step < 0) continue;
    point.step = std::max(point.step, step);
    point.last = point.last < 0 ? step : std::min(point.last, step);
  }
  std::vector<int64_t> known;
  for (size_t rank = 0; rank < progress.step_us.size(); ++rank) {
    const int64_t took = progress.step_us[rank];
    if (took <= 0) continue;
    known.push_back(took);
    if (point.slowest_us && took <= *point.slowest_us) continue;
    point.slowest_us = took;
    point.slowest_rank = static_cast<int64_t>(rank);
  }
  if (known.empty()) return point;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>((known.size() - 1) / 2);
  std::ranges::nth_element(known, middle);
  point.median_us = *middle;
  return point;
}

void StepHistory::update(const Coordinator& coordinator) {
  std::erase_if(jobs_, [&](const auto& job) { return !coordinator.jobs().contains(job.first); });
  for (const auto& [run_id, job] : coordinator.jobs()) {
    if (job->progress().round == RoundNumber()) continue;
    const StepPoint point = point_of(job->progress());
    std::deque<StepPoint>& points = jobs_[run_id];
    if (!points.empty() && points.back().is_same_as(point)) continue;
    points.push_back(point);
    if (points.size() > limits::kStepPoints) points.pop_front();
  }
}

}  // namespace cpprun

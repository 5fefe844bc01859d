#include "rendezvous/coordinator/stragglers/slow_ranks.hpp"

#include <algorithm>

#include "common/limits/dashboard.hpp"
#include "common/limits/stragglers.hpp"

namespace cpprun {
namespace {

// The median is made anew after so many samples per rank: of a large job not with each one.
constexpr size_t kMediansPerTurn = 8;

}  // namespace

void SlowRanks::update_median() {
  if (since_median_ * kMediansPerTurn < ranks_.size()) return;
  std::vector<int64_t> all;
  all.reserve(ranks_.size());
  for (const auto& [rank, track] : ranks_) all.push_back(track.compute_us);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::ranges::nth_element(all, middle);
  median_us_ = *middle;
  since_median_ = 0;
}

// The last n steps, and some reports at least: one pause of a machine is in one report.
void SlowRanks::keep(Track& track, Sample sample) {
  sample.steps = std::min(sample.steps, limits::kSlowWindow);
  track.samples.push_back(sample);
  track.steps += sample.steps;
  if (sample.is_slow) track.slow_steps += sample.steps;
  while (track.samples.size() > limits::kSlowReports &&
         track.steps - track.samples.front().steps >= limits::kSlowWindow) {
    const Sample& oldest = track.samples.front();
    track.steps -= oldest.steps;
    if (oldest.is_slow) track.slow_steps -= oldest.steps;
    track.samples.pop_front();
  }
}

std::optional<SlowRankChange> SlowRanks::add(int64_t rank, int64_t steps, int64_t compute_us) {
  const bool is_sane =
      rank >= 0 && steps > 0 && compute_us >= 0 && compute_us <= limits::kComputeTimeMaxUs;
  if (!is_sane || (ranks_.size() >= limits::kRanksShown && !ranks_.contains(rank)))
    return std::nullopt;
  Track& track = ranks_[rank];
  track.compute_us = compute_us;
  ++since_median_;
  update_median();
  if (ranks_.size() < limits::kRanksCompared) return std::nullopt;
  constexpr int64_t kWhole = 100;
  const bool is_slow = compute_us * kWhole > median_us_ * limits::kSlowPercent &&
                       compute_us - median_us_ > limits::kSlowDifferenceUs;
  keep(track, Sample{steps, is_slow});
  const bool has_enough =
      track.steps >= limits::kSlowWindow && track.samples.size() >= limits::kSlowReports;
  if (!has_enough) return std::nullopt;
  const bool was_slow = track.is_slow;
  const int64_t of = limits::kSlowWindow;  // the samples may hold more steps
  if (track.slow_steps * of >= limits::kSlowSteps * track.steps) track.is_slow = true;
  if (track.slow_steps * of <= limits::kSlowStepsOver * track.steps) track.is_slow = false;
  if (track.is_slow == was_slow) return std::nullopt;
  return describe(rank, track);
}

SlowRankChange SlowRanks::describe(int64_t rank, const Track& track) const {
  return {rank, track.is_slow, track.compute_us, median_us_, track.slow_steps, track.steps};
}

std::vector<SlowRankChange> SlowRanks::slow() const {
  std::vector<SlowRankChange> all;
  for (const auto& [rank, track] : ranks_) {
    if (track.is_slow) all.push_back(describe(rank, track));
  }
  return all;
}

}  // namespace cpprun

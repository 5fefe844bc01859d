#include "agent/core/round_preparation.hpp"

namespace cpprun::agent {

void RoundPreparation::begin(const control::RankAssignment& assignment,
                             const control::Register& facts, Effects& effects) {
  files_ = Files::None;
  if (facts.has_snapshot_dir) effects.push_back(ServeSnapshots{assignment.snapshot_secret});
  is_fetching_snapshot_ = assignment.resume && !assignment.resume->source_address.empty();
  if (is_fetching_snapshot_) {
    effects.push_back(FetchSnapshot{*assignment.resume, assignment.snapshot_secret});
  }
  if (facts.keeps_replicas) {
    effects.push_back(KeepReplicas{assignment.replicas_of, assignment.snapshot_secret});
  }
  is_fetching_replicas_ = facts.keeps_replicas && assignment.replicas_at;
  if (is_fetching_replicas_) effects.push_back(FetchReplicas{*assignment.replicas_at, assignment});
}

void RoundPreparation::make_files(const control::RankAssignment& assignment, Effects& effects) {
  files_ = Files::Awaited;
  const int64_t attempt = assignment.restart_count + assignment.hang_restarts;
  effects.push_back(PrepareRound{attempt, assignment.round});
}

bool RoundPreparation::on_files_made() {
  if (files_ != Files::Awaited) return false;
  files_ = Files::Ready;
  return true;
}

void RoundPreparation::cancel(Effects& effects) {
  files_ = Files::None;
  if (is_fetching()) effects.push_back(DropFetch{});
  is_fetching_snapshot_ = is_fetching_replicas_ = false;
}

}  // namespace cpprun::agent

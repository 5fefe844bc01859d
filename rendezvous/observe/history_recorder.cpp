#include "rendezvous/observe/history_recorder.hpp"

#include <algorithm>
#include <numeric>

#include "common/failure/error_location.hpp"
#include "common/failure/failure_summary.hpp"
#include "common/limits/dashboard.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

bool runs(const Job& job, Incarnation incarnation) {
  auto it = job.nodes().find(incarnation);
  if (it == job.nodes().end()) return false;
  return it->second.worker_phase == Node::WorkerPhase::Running ||
         it->second.worker_phase == Node::WorkerPhase::Done;
}

// The error itself, where it is, and the hint for it.
void describe_error(RoundRecord& record, const RootCause& root_cause) {
  const bool has_worker = root_cause.why.empty();
  const std::string error = has_worker ? error_text(root_cause.end) : root_cause.why;
  record.error = text::one_line(error, limits::kReasonBytesReported);
  if (has_worker) record.location = error_location(root_cause.end);
  if (const Hint* hint = hint_for(root_cause)) record.hint = hint_text(*hint, root_cause, "");
}

std::vector<std::string> clipped(const std::vector<std::string>& lines) {
  const size_t count = std::min(lines.size(), limits::kLinesReported);
  std::vector<std::string> kept(lines.end() - static_cast<ptrdiff_t>(count), lines.end());
  for (std::string& line : kept) line = line.substr(0, limits::kLineBytesReported);
  return kept;
}

}  // namespace

void Recoveries::add(Duration took) {
  const double s = to_seconds(took);
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), s) - kBounds.begin();
  ++counts[static_cast<size_t>(bucket)];
  sum_s += s;
}

int64_t Recoveries::count() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// A whole round may start and stop between two updates; the stop's reason and the failure that it
// leaves behind name their round.
void JobHistory::update(Instant now, const Job& job) {
  if (job.phase() == Job::Phase::Recovering) return;  // its members are not known yet
  note_stop(now, job);
  record_exit(now, job);
  note_forming(now, job);
  note_start(now, job);
}

void JobHistory::note_stop(Instant now, const Job& job) {
  if (rounds_.empty()) return;
  RoundRecord& record = rounds_.back();
  const control::Stop& stop = job.last_stop();
  if (record.stopped_at || stop.round != record.round) return;
  record.stopped_at = now;
  record.cause = stop.cause;
  record.why = stop.why.substr(0, limits::kReasonBytesReported);
  ++stops_[stop.cause];
  if (!broken_since_) broken_since_ = now;
}

void JobHistory::record_exit(Instant now, const Job& job) {
  if (rounds_.empty() || rounds_.back().over_at) return;
  RoundRecord& record = rounds_.back();
  using Phase = Job::Phase;
  const bool is_busy = job.phase() == Phase::Running || job.phase() == Phase::Stopping;
  if (is_busy && job.round() == record.round) return;
  record.over_at = now;
  note_failure(record, job);
}

void JobHistory::note_failure(RoundRecord& record, const Job& job) {
  const Job::RoundFailure& failed = job.last_failure();
  if (failed.round == record.round) {
    record.failure = class_of(failed.root_cause);
    record.root_cause = describe(failed.root_cause).substr(0, limits::kReasonBytesReported);
    describe_error(record, failed.root_cause);
    record.last_lines = clipped(failed.root_cause.end.last_lines);
  } else if (record.stopped_at && record.cause == control::StopCause::NodeLost) {
    record.failure = FailureClass::LostNode;
    record.root_cause = record.why;
  }
  if (record.failure) ++failures_[*record.failure];
}

void JobHistory::note_forming(Instant now, const Job& job) {
  const bool is_known = !rounds_.empty() && rounds_.back().round == job.round();
  if (is_known || job.assignments().empty()) return;
  RoundRecord& record = rounds_.emplace_back();
  record.round = job.round();
  record.nodes = job.assignments().size();
  record.workers = job.world_size();
  record.formed_at = now;
  ++rounds_formed_;
  not_started_.clear();
  for (const auto& [incarnation, assignment] : job.assignments())
    not_started_.push_back(incarnation);
  forget_old_rounds();
}

// Checks each member until it runs.
void JobHistory::note_start(Instant now, const Job& job) {
  if (rounds_.empty() || job.phase() != Job::Phase::Running) return;
  RoundRecord& record = rounds_.back();
  if (record.started_at) return;
  while (!not_started_.empty() && runs(job, not_started_.back())) not_started_.pop_back();
  if (!not_started_.empty()) return;
  record.started_at = now;
  if (broken_since_) recoveries_.add(now - *broken_since_);
  broken_since_.reset();
}

void JobHistory::forget_old_rounds() {
  if (rounds_.size() > limits::kRoundsReported) rounds_.pop_front();
  if (rounds_.size() > limits::kRoundsWithLines) {
    rounds_[rounds_.size() - limits::kRoundsWithLines - 1].last_lines.clear();
  }
}

void HistoryRecorder::update(Instant now, const Coordinator& coordinator) {
  const auto& all = coordinator.jobs();
  std::erase_if(jobs_, [&all](const auto& entry) {
    auto it = all.find(entry.first);
    return it == all.end() || it->second->term() != entry.second.term();
  });
  for (const auto& [run_id, job] : all) {
    jobs_.try_emplace(run_id, job->term()).first->second.update(now, *job);
  }
}

const JobHistory* HistoryRecorder::of(const std::string& run_id) const {
  auto it = jobs_.find(run_id);
  return it == jobs_.end() ? nullptr : &it->second;
}

}  // namespace cpprun

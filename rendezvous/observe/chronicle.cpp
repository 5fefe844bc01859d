#include "rendezvous/observe/chronicle.hpp"

#include <algorithm>

#include "common/failure/verdict.hpp"
#include "common/limits/dashboard.hpp"

namespace cpprun {
namespace {

bool runs(const Membership& job, Incarnation incarnation) {
  auto it = job.nodes().find(incarnation);
  if (it == job.nodes().end()) return false;
  return it->second.work == Node::Work::Running || it->second.work == Node::Work::Done;
}

std::vector<std::string> clipped(const std::vector<std::string>& lines) {
  const size_t first = lines.size() - std::min(lines.size(), limits::kLinesTold);
  std::vector<std::string> kept;
  for (size_t i = first; i < lines.size(); ++i) {
    kept.push_back(lines[i].substr(0, limits::kLineBytesTold));
  }
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
  int64_t all = 0;
  for (int64_t each : counts) all += each;
  return all;
}

// A whole round may come and go between two looks' worth of state: what it left behind (why it
// stopped, what failed) names the round that it is about.
void JobStory::look(Instant now, const Membership& job) {
  if (job.phase() == Membership::Phase::Recovering) return;  // who is in the round is not known yet
  note_stop(now, job);
  note_end(now, job);
  note_forming(now, job);
  note_start(now, job);
}

void JobStory::note_stop(Instant now, const Membership& job) {
  if (rounds_.empty()) return;
  RoundStory& story = rounds_.back();
  const control::Stop& stop = job.last_stop();
  if (story.stopped_at || stop.round != story.round) return;
  story.stopped_at = now;
  story.cause = stop.cause;
  story.why = stop.why.substr(0, limits::kWhyBytesTold);
  ++stops_[stop.cause];
  if (!broken_since_) broken_since_ = now;
}

void JobStory::note_end(Instant now, const Membership& job) {
  if (rounds_.empty() || rounds_.back().over_at) return;
  RoundStory& story = rounds_.back();
  using Phase = Membership::Phase;
  const bool is_busy = job.phase() == Phase::Running || job.phase() == Phase::Stopping;
  if (is_busy && job.round() == story.round) return;
  story.over_at = now;
  note_failure(story, job);
}

void JobStory::note_failure(RoundStory& story, const Membership& job) {
  const Membership::RoundFailure& failed = job.last_failure();
  if (failed.round == story.round) {
    story.failure = class_of(failed.culprit);
    story.culprit = describe(failed.culprit).substr(0, limits::kWhyBytesTold);
    story.last_lines = clipped(failed.culprit.end.last_lines);
  } else if (story.stopped_at && story.cause == control::StopCause::NodeLost) {
    story.failure = FailureClass::LostNode;
    story.culprit = story.why;
  }
  if (story.failure) ++failures_[*story.failure];
}

void JobStory::note_forming(Instant now, const Membership& job) {
  const bool is_known = !rounds_.empty() && rounds_.back().round == job.round();
  if (is_known || job.worlds().empty()) return;
  RoundStory& story = rounds_.emplace_back();
  story.round = job.round();
  story.nodes = job.worlds().size();
  story.workers = job.world_size();
  story.formed_at = now;
  ++rounds_formed_;
  not_started_.clear();
  for (const auto& [incarnation, world] : job.worlds()) not_started_.push_back(incarnation);
  forget_old_rounds();
}

// Each member is looked at until it runs, and then no more.
void JobStory::note_start(Instant now, const Membership& job) {
  if (rounds_.empty() || job.phase() != Membership::Phase::Running) return;
  RoundStory& story = rounds_.back();
  if (story.started_at) return;
  while (!not_started_.empty() && runs(job, not_started_.back())) not_started_.pop_back();
  if (!not_started_.empty()) return;
  story.started_at = now;
  if (broken_since_) recoveries_.add(now - *broken_since_);
  broken_since_.reset();
}

void JobStory::forget_old_rounds() {
  if (rounds_.size() > limits::kRoundsTold) rounds_.pop_front();
  if (rounds_.size() > limits::kRoundsWithLines) {
    rounds_[rounds_.size() - limits::kRoundsWithLines - 1].last_lines.clear();
  }
}

void Chronicle::look(Instant now, const Coordinator& coordinator) {
  const auto& all = coordinator.jobs();
  std::erase_if(jobs_, [&all](const auto& entry) {
    auto it = all.find(entry.first);
    return it == all.end() || it->second->epoch() != entry.second.epoch();
  });
  for (const auto& [run_id, job] : all) {
    jobs_.try_emplace(run_id, job->epoch()).first->second.look(now, *job);
  }
}

const JobStory* Chronicle::of(const std::string& run_id) const {
  auto it = jobs_.find(run_id);
  return it == jobs_.end() ? nullptr : &it->second;
}

}  // namespace cpprun

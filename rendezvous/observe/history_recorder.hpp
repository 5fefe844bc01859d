// HistoryRecorder: the history of each job's rounds and the duration of recoveries, for /metrics
// and the dashboard. An observer: after each call into the Coordinator it compares the state with
// the last one; it decides nothing. Bounded. Pure: the caller passes the time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/failure/failure_class.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/coordinator.hpp"

namespace cpprun {

// One round from forming to stopping.
struct RoundRecord {
  RoundNumber round;
  size_t nodes = 0;
  int64_t workers = 0;
  Instant formed_at;
  std::optional<Instant> started_at;                       // all workers of all nodes ran
  std::optional<Instant> stopped_at;                       // empty: it runs, or ended well
  std::optional<Instant> over_at;                          // all its workers have exited
  control::StopCause cause = control::StopCause::Failure;  // if stopped_at
  std::string why{};                                       // for people
  // Of the root cause, if there was a failure.
  std::optional<FailureClass> failure{};
  std::string root_cause{};               // "rank 1 (pid 4711, on node0) exited with code 3"
  std::string error{};                    // the worker's own: "ValueError: bad batch"; may be empty
  std::string location{};                 // of the error: "train.py:4 in load"; may be empty
  std::string hint{};                     // may be empty
  std::vector<std::string> last_lines{};  // of its stderr; of the newest rounds only
};

// Durations of recoveries: from the stop of a round until the workers of a later one ran.
struct Recoveries {
  // Upper bounds in seconds; one more bucket holds longer recoveries.
  static constexpr std::array<double, 11> kBounds{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900};
  std::array<int64_t, kBounds.size() + 1> counts{};  // not cumulative
  double sum_s = 0;

  void add(Duration took);
  int64_t count() const;
};

class JobHistory {
 public:
  explicit JobHistory(Term term) : term_(term) {}
  void update(Instant now, const Job& job);

  Term term() const { return term_; }
  // Newest last, at most limits::kRoundsReported.
  const std::deque<RoundRecord>& rounds() const { return rounds_; }
  int64_t rounds_formed() const { return rounds_formed_; }
  const std::map<control::StopCause, int64_t>& stops() const { return stops_; }
  // Rounds that ended by a failure, by the class of the root cause.
  const std::map<FailureClass, int64_t>& failures() const { return failures_; }
  const Recoveries& recoveries() const { return recoveries_; }

 private:
  void note_stop(Instant now, const Job& job);
  void record_exit(Instant now, const Job& job);
  void note_failure(RoundRecord& record, const Job& job);
  void note_forming(Instant now, const Job& job);
  void note_start(Instant now, const Job& job);
  void forget_old_rounds();

  Term term_;
  std::deque<RoundRecord> rounds_;
  std::vector<Incarnation> not_started_;  // of the newest round
  std::optional<Instant> broken_since_;   // a round stopped, and no later one runs yet
  int64_t rounds_formed_ = 0;
  std::map<control::StopCause, int64_t> stops_;
  std::map<FailureClass, int64_t> failures_;
  Recoveries recoveries_;
};

class HistoryRecorder {
 public:
  // Call after each call into the coordinator. Costs O(jobs) if nothing changed.
  void update(Instant now, const Coordinator& coordinator);
  // nullptr: unknown job.
  const JobHistory* of(const std::string& run_id) const;

 private:
  std::map<std::string, JobHistory> jobs_;  // by run id; the jobs that the coordinator knows
};

}  // namespace cpprun

// FailureRecord: what failed in the rounds of a job, which failure came first, and whether the job
// fails because of it.
//
// A core: no I/O, no clock. Nodes on different machines have different clocks: each message brings
// its send time, and its receipt gives an upper bound of how far that clock lags behind ours.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/failure/worker_exit.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/node.hpp"
#include "rendezvous/coordinator/repeats/failure_repeats.hpp"
#include "rendezvous/coordinator/restart_budgets.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class FailureRecord {
 public:
  // The root cause of a round.
  struct RoundFailure {
    RoundNumber round;
    RootCause root_cause;
  };

  // `max_startup_failures`: --startup-failures; 0: no limit. `stops_on_repeat`: a failure that a
  // restart cannot heal ends the job.
  FailureRecord(int64_t max_startup_failures, bool stops_on_repeat)
      : max_startup_failures_(max_startup_failures), stops_on_repeat_(stops_on_repeat) {}

  // A round begins: the failures of the last one count no more.
  void begin_round() { clocks_.clear(); }
  // The job continues from a newer round than the one whose failures were recorded.
  void restart();

  // The root cause that `node` reports.
  static RootCause root_cause_of(const Node& node, const control::Failed& message);
  void note_clock(Instant now, const Node& node, const control::Failed& message);
  void add(const Node& node, const WorkerExit& end, const std::string& why);
  // The job fails as soon as the round is over. The first summary counts.
  void fail_job(const std::string& summary);
  // The same because of a lost node: failures of workers followed from that.
  void fail_job_after_loss(const std::string& summary) {
    if (!failure_summary_) failure_summary_ = summary;
  }
  // Another coordinator has charged `round`. The job fails if the budget is used up.
  void charge_as_reported(RoundNumber round, control::RestartCharge charged,
                          RestartBudgets& budgets);
  // Of the current round; nullptr: no worker has failed.
  const RootCause* root_cause() const;
  // The job continues without the host of the root cause, which explains all failures of the round.
  // Before end_round().
  void pardon(RoundNumber round);
  // All nodes have reported: finds the root cause, counts equal failures in a row, and keeps in
  // `past` what the next rounds need to know of them.
  void end_round(RoundNumber round, const RestartBudgets& budgets, const JobProgress& made,
                 control::PastFailures& past);

  bool is_job_failing() const { return failure_summary_.has_value(); }
  // Requires: is_job_failing().
  control::JobResult job_result(int64_t world_size) const;
  // Of the newest round that is over and in which a worker failed.
  const RoundFailure& last_failure() const { return last_failure_; }

 private:
  struct Candidate {
    RootCause root_cause;
    Instant at;              // on its node's clock
    bool has_cause = false;  // the end of another worker does not explain it
  };
  // The first failure of all nodes that share a clock, and that clock's lag behind ours.
  struct Clock {
    std::optional<Candidate> first;
    std::optional<int64_t> lag_ns;
  };

  void forget_failures_of_workers();
  void count_startup_failure(const RootCause& cause);
  Clock* clock_of(const Node& node);

  const int64_t max_startup_failures_;
  const bool stops_on_repeat_;
  std::map<std::string, Clock> clocks_;  // of nodes with a failure in this round
  std::string startup_signature_;        // how the last round failed at start-up; empty: it did not
  int64_t same_startup_failures_ = 0;    // rounds in a row that failed at start-up in the same way
  int64_t same_failures_ = 0;            // rounds in a row with this failure at this step
  std::string why_no_retry_;             // empty: another try may help
  std::optional<std::string> failure_summary_;
  bool is_workers_fault_ = false;  // the job fails because of a worker
  RoundFailure last_failure_;
};

// "rank 1 (pid 4711, on node0) exited with code 3", or why no worker ran.
std::string describe(const RootCause& root_cause);

}  // namespace cpprun

// FaultReport: what struck when, how long it took until all workers ran again, what was lost; and
// whether what the plan expects has held.
//
// A core: no clock, no I/O. One for each agent with a plan; faults on other nodes are in it too, as
// the coordinator tells of them.
#pragma once

#include <string>
#include <vector>

#include "common/faults/plan.hpp"

namespace cpprun::faults {

// Where a program is, as far as it has said.
struct Progress {
  std::optional<int64_t> step, epoch;
};

struct InjectedFault {
  size_t fault = 0;
  std::string where;  // "rank 1 at step 12"
  Instant at;
  int64_t round = 0;
  Progress progress{};
  std::optional<Duration> recovery{};  // until all workers of the next round here were spawned
  std::optional<int64_t> lost_steps{}, lost_epochs{};
};

// One line of the judgement.
struct ExpectationResult {
  std::string name;  // "fault 1: kill rank 1", "restarts"
  bool is_held = true;
  std::string text;    // what was seen
  double seconds = 0;  // how long it took, for reports that have a column for it
};

class FaultReport {
 public:
  explicit FaultReport(Plan plan) : plan_(std::move(plan)) {}

  void on_injected(Instant now, size_t fault, int64_t round, std::string where, Progress progress);
  // All workers of this round are spawned here.
  void on_started(Instant now, int64_t round, int64_t restarts);
  // A worker of the newest round has reached its first step.
  void on_began(Progress progress);

  // `exit_code` of the job; `hash` of the final file, empty if it can't be read.
  std::vector<ExpectationResult> check_expectations(int exit_code, const std::string& hash) const;

  const std::vector<InjectedFault>& injections() const { return injections_; }
  const Plan& plan() const { return plan_; }
  int64_t restarts() const { return restarts_; }

 private:
  const Plan plan_;
  std::vector<InjectedFault> injections_;
  int64_t round_ = 0;
  int64_t restarts_ = 0;
};

}  // namespace cpprun::faults

// FaultReport: records the injected faults, the recovery times and the lost work, and checks the
// plan's expectations.
//
// A pure core: no clock, no I/O. Each agent with a plan has one. It contains the faults of all
// nodes, because the coordinator reports them to every agent.
#pragma once

#include <string>
#include <vector>

#include "common/faults/plan.hpp"

namespace cpprun::faults {

// The last position that a program has reported.
struct Progress {
  std::optional<int64_t> step, epoch;
};

struct InjectedFault {
  size_t fault = 0;
  std::string where;  // "rank 1 at step 12"
  Instant at;
  int64_t round = 0;
  Progress progress{};
  std::optional<Duration> recovery{};  // until this node had spawned all workers of the next round
  std::optional<int64_t> lost_steps{}, lost_epochs{};
};

// The result of one check.
struct ExpectationResult {
  std::string name;  // "fault 1: kill rank 1", "restarts"
  bool is_held = true;
  std::string text;    // the observation
  double seconds = 0;  // duration, for reports with a column for it
};

class FaultReport {
 public:
  explicit FaultReport(Plan plan) : plan_(std::move(plan)) {}

  void on_injected(Instant now, size_t fault, int64_t round, std::string where, Progress progress);
  // This node has spawned all its workers of the round.
  void on_started(Instant now, int64_t round, int64_t restarts);
  // A worker of the newest round begins its first step, at `progress`.
  void on_began(Progress progress);

  // `exit_code`: the job's. `hash`: of the final file; empty if it cannot be read.
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

// The texts that cpprun prints when a job fails: the failure summary, one paragraph, and below it
// torchrun's summary. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/failure/failure_class.hpp"
#include "common/failure/hints.hpp"
#include "common/failure/worker_exit.hpp"

namespace cpprun {

struct Failure {
  std::string title;             // the script, or the program
  std::string host;              // this node
  std::vector<WorkerExit> ends;  // of one round, in the kernel's order; successes are skipped
  int64_t restarts_used = 0;
  int64_t max_restarts = 0;
  int64_t admin_restarts = 0;         // by admin command; not charged to the restart budget
  RootCause root_cause;               // of all nodes
  int64_t world_size = 0;             // of the round that failed; 0: no worker ran
  int64_t same_startup_failures = 0;  // consecutive attempts with this same start-up failure
  // Format local time: "2026-11-21_14:03:59" and "14:03:59.113".
  std::function<std::string(WallTime)> stamp;
  std::function<std::string(WallTime)> clock;
};

// "rank 1 (local rank 1, pid 4711, on node0) was killed by SIGKILL at 14:03:59.113".
std::string first_failure(const WorkerExit& end, const std::string& host, const std::string& clock);

FailureClass class_of(const RootCause& root_cause);
const Hint* hint_for(const RootCause& root_cause);

// One paragraph: the worker that failed first, how it failed, the consequences, the restart budget,
// a hint if one is known, and the worker's own error text.
std::string failure_summary(const Failure& failure);

// "the last 20 lines of rank 1 on stderr:" and the lines, indented; "" if there are fewer than two,
// since the summary itself shows the last one.
std::string last_lines_text(const RootCause& root_cause);

// torchrun's ChildFailedError text, for which scripts grep. Requires: a failure in `ends`.
std::string torchrun_summary(const Failure& failure);

}  // namespace cpprun

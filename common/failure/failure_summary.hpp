// What people read when a job fails: the failure summary, one paragraph, and below it the summary
// in torchrun's shape. Pure text.
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
  std::vector<WorkerExit> ends;  // of one round, in the kernel's order; successes are passed over
  int64_t restarts_used = 0;
  int64_t max_restarts = 0;
  int64_t admin_restarts = 0;         // that operators asked for; they cost nothing
  RootCause root_cause;               // who failed first, of all nodes
  int64_t world_size = 0;             // of the round that failed; 0: no worker ran
  int64_t same_startup_failures = 0;  // attempts in a row that failed at start-up in this same way
  // Local time of the machine, for people: "2026-11-21_14:03:59" and "14:03:59.113".
  std::function<std::string(WallTime)> stamp;
  std::function<std::string(WallTime)> clock;
};

// "rank 1 (local rank 1, pid 4711, on node0) was killed by SIGKILL at 14:03:59.113": who died
// first, and how.
std::string first_failure(const WorkerExit& end, const std::string& host, const std::string& clock);

// The kind of the root cause's end.
FailureClass class_of(const RootCause& root_cause);
const Hint* hint_for(const RootCause& root_cause);

// One paragraph: who failed first and how, what followed from it, what cpprun did, what is left,
// a hint if one is known, and its own words (exception or last line).
std::string failure_summary(const Failure& failure);

// "Its last 20 lines on stderr:" and the lines, indented; "" if there are none worth it.
std::string last_lines_text(const RootCause& root_cause);

// torchrun's ChildFailedError text: scripts grep for its words. Requires: a failure in `ends`.
std::string torchrun_summary(const Failure& failure);

}  // namespace cpprun

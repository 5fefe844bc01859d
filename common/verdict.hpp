// What people read when a job fails: the one-line verdict, and below it the summary in torchrun's
// shape. Pure text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/worker_end.hpp"

namespace cpprun {

struct Failure {
  std::string title;            // the script, or the program
  std::string host;             // this node
  std::vector<WorkerEnd> ends;  // of one round, in the kernel's order; successes are passed over
  int64_t restarts_used = 0;
  int64_t max_restarts = 0;
  // Local time of the machine, for people: "2026-11-21_14:03:59" and "14:03:59.113".
  std::function<std::string(WallTime)> stamp;
  std::function<std::string(WallTime)> clock;
};

// "rank 1 (local rank 1, pid 4711, on node0) was killed by SIGKILL at 14:03:59.113": who died
// first, and how.
std::string first_failure(const WorkerEnd& end, const std::string& host, const std::string& clock);

// first_failure() of the root cause, its own words (exception or last line), and what followed.
// Requires: a failure in `ends`.
std::string verdict(const Failure& failure);

// torchrun's ChildFailedError text: scripts grep for its words. Requires: a failure in `ends`.
std::string failure_summary(const Failure& failure);

}  // namespace cpprun

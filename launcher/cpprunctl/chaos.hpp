// cpprunctl chaos: runs one fault plan with many seeds. Runs the job once without faults if the
// plan compares with that, then once per seed, and reports recovery times and lost steps.
//
// Starts cpprun with the given command line and reads its fault report; injects no faults itself.
// Thread: main. Stdout: the report; the jobs' own output is not redirected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

struct ChaosOptions {
  std::string plan;                  // path of the plan
  int64_t seeds = 10;                // number of seeds
  int64_t first = 0;                 // the first seed
  std::vector<std::string> command;  // cpprun and its arguments; {seed} in them is replaced
};

// An Error means that the plan can't be read or cpprun can't be started. Whether the plan's
// expectations held is in ChaosResult.
struct ChaosResult {
  bool is_held = true;
  int signal = 0;  // the signal that interrupted a run; cpprunctl exits the same way
};
Result<ChaosResult> chaos(const ChaosOptions& options);

}  // namespace cpprun

// cpprunctl chaos: one fault plan with many seeds. Runs the job once without faults where the plan
// compares with that, then once for each seed, and reports how long recovery took and what was
// lost.
//
// Starts cpprun as it is typed and judges by its account; decides nothing about faults itself.
// Thread: main. Stdout: the report; the jobs' own output goes where it always goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

struct ChaosOptions {
  std::string plan;                  // its file
  int64_t seeds = 10;                // how many
  int64_t first = 0;                 // the first of them
  std::vector<std::string> command;  // cpprun and its words; {seed} in them is replaced
};

// Error: the plan can't be read, or cpprun can't be started. What the plan expects need not have
// held for that: ChaosResult says.
struct ChaosResult {
  bool is_held = true;
  int signal = 0;  // a run was ended by it, and so are we
};
Result<ChaosResult> chaos(const ChaosOptions& options);

}  // namespace cpprun

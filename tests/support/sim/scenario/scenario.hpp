// Scenario: a script of faults and commands, and the transcript of the job's reaction. Scripts are
// tests/scenarios/*.txt; docs/simulation.md defines the language.
//
//   # What it shows.
//   job nnodes=2 max-restarts=3
//   nodes a b
//   until round 1 runs within 2s
//      0.0030 head  round 1 of job 'job': 2 nodes, 2 workers
//
// A line that begins with a space is transcript: the events during the command above it.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun::sim {

struct ScenarioRun {
  std::string text;                   // the script again, with the transcript of this run
  std::vector<std::string> failures;  // violated expectations and properties
};

// An Error for an unknown command; it names the line.
Result<ScenarioRun> run_scenario(const std::string& script);

}  // namespace cpprun::sim

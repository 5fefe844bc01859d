// WorkerSpec: what the host needs to start one worker. Plain data.
#pragma once

#include <string>
#include <vector>

#include "common/ids.hpp"

namespace cpprun {

// Destination of one stream of a worker. File only: the worker writes the file itself. Console: the
// agent copies whole lines.
struct StreamRoute {
  std::string file;        // empty: no file
  bool to_console = true;  // false, and no file: /dev/null
  std::string prefix;      // before each console line
  // Lines that contain one of these also go, with prefix, to duplicate_file.
  std::vector<std::string> duplicate_filters;
  std::string duplicate_file;  // shared by all workers of the round
};

struct WorkerSpec {
  LocalRank local_rank;
  Rank rank;
  std::vector<std::string> argv;  // argv[0] without a slash: looked up on PATH of `environment`
  std::vector<std::string> environment;  // complete, "NAME=value"
  // Of these, what a survivor of an earlier round must take over: the variables that differ between
  // rounds. "NAME" alone: remove it.
  std::vector<std::string> round_variables{};
  std::vector<int> cpus{};     // that it may use; empty: the agent's own
  std::vector<int> ignored{};  // signals that are ignored unless the program handles them
  StreamRoute out;
  StreamRoute err;
  std::string error_file;  // read after the worker's end; empty: none
};

}  // namespace cpprun

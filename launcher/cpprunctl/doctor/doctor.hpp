// `cpprunctl doctor`: checks this node for problems before a job runs into them.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun {

// For checks between nodes: they meet at the endpoint, and each one measures its connections to all
// others.
struct DoctorNodesOptions {
  int64_t count = 0;           // number of nodes; 0: check this node alone
  double wait_s = 60;          // how long to wait for the others
  int port = 0;                // where this node serves the others; 0: a free port
  double least_gbps = 0;       // slower is a finding; 0: only outliers are
  double most_latency_ms = 0;  // likewise
};

struct DoctorOptions {
  int nproc = 1;
  std::string endpoint;      // HOST[:PORT]; "" skips the check
  std::string snapshot_dir;  // likewise
  bool is_json = false;
  bool is_verbose = false;  // prints the checks that are ok too
  DoctorNodesOptions nodes{};
};

// Prints a line per finding, and a cure under each finding. False if it found a problem that makes
// jobs fail. Blocks for a few seconds where names or addresses do not answer.
Result<bool> run_doctor(const DoctorOptions& options);

}  // namespace cpprun

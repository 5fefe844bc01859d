// `cpprunctl doctor`: checks this node for problems before a job runs into them.
#pragma once

#include <string>

#include "common/result.hpp"
#include "launcher/cpprunctl/doctor/doctor_nodes.hpp"

namespace cpprun {

struct DoctorOptions {
  int nproc = 1;
  std::string endpoint;      // HOST[:PORT]; "" skips the check
  std::string snapshot_dir;  // likewise
  bool is_json = false;
  ctl::DoctorNodesOptions nodes{};  // to check several nodes at once, which meet at the endpoint
};

// Prints a line per check, and a cure under each finding. False if it found a problem that makes
// jobs fail. Blocks for a few seconds where names or addresses do not answer.
Result<bool> run_doctor(const DoctorOptions& options);

}  // namespace cpprun

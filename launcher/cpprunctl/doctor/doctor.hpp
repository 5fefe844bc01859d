// `cpprunctl doctor`: what is wrong with this node, before a job finds out.
#pragma once

#include <string>

#include "common/result.hpp"
#include "launcher/cpprunctl/doctor/doctor_nodes.hpp"

namespace cpprun {

struct DoctorOptions {
  int nproc = 1;
  std::string endpoint;      // HOST[:PORT]; "" leaves the check out
  std::string snapshot_dir;  // likewise
  bool is_json = false;
  ctl::DoctorNodesOptions nodes{};  // several at once, which meet at the endpoint
};

// Prints a line per check, and the cure where there is something to cure. False if something was
// found that makes jobs fail. Blocks for a few seconds where names or addresses do not answer.
Result<bool> run_doctor(const DoctorOptions& options);

}  // namespace cpprun

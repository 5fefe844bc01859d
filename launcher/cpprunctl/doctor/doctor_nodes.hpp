// cpprunctl doctor on several nodes at once: they meet at an endpoint, and each one measures its
// connections to all others.
#pragma once

#include <cstdint>

#include "common/endpoint.hpp"
#include "common/result.hpp"

namespace cpprun::ctl {

struct DoctorNodesOptions {
  int64_t count = 0;           // number of nodes; 0: check this node alone
  double wait_s = 60;          // how long to wait for the others
  int port = 0;                // where this node serves the others; 0: a free port
  double least_gbps = 0;       // slower is a finding; 0: only outliers are
  double most_latency_ms = 0;  // likewise
};

// Blocks until all pairs are measured. Node 0, which joined first, prints the findings; the others
// print its name. True: no node has a problem that makes jobs fail.
Result<bool> run_doctors(const Endpoint& endpoint, const DoctorNodesOptions& options, bool is_json);

}  // namespace cpprun::ctl

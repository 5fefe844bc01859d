// cpprunctl doctor on several nodes at once: they meet at an endpoint, and each looks at each.
#pragma once

#include <cstdint>

#include "common/endpoint.hpp"
#include "common/result.hpp"

namespace cpprun::ctl {

struct DoctorNodesOptions {
  int64_t count = 0;           // nodes that are to meet; 0: this node alone is looked at
  double wait_s = 60;          // for the others
  int port = 0;                // where this node answers the others; 0: a free one
  double least_gbps = 0;       // slower is a finding; 0: only what is far off the usual
  double most_latency_ms = 0;  // likewise
};

// Blocks until all have looked at each other. The node that came first prints the findings, the
// others a line that says who does. True: nothing that makes jobs fail, on any node.
Result<bool> run_doctors(const Endpoint& endpoint, const DoctorNodesOptions& options, bool is_json);

}  // namespace cpprun::ctl

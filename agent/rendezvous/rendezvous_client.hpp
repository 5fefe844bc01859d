// A node of a job without workers of cpprun: another launcher, such as torchrun, starts them. The
// agent's core joins rounds at the coordinator; the other launcher reads events from standard
// output and writes requests to standard input (rendezvous_lines.hpp).
//
// The node has no reaper process and no worker lease of its own: the other launcher stops its
// workers when it sees the event. Thread: the caller's, until the end of the run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/endpoint.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"
#include "common/tls/job_tls.hpp"

namespace cpprun {

struct RendezvousClientOptions {
  Endpoint endpoint;  // of the coordinator
  std::string run_id;
  int64_t min_nodes = 1;
  int64_t max_nodes = 1;
  std::string local_addr;  // at which other nodes reach this one; empty: found
  Duration join_timeout = limits::kJoinTimeout;
  Duration connect_timeout = limits::kFirstConnectTimeout;
  std::optional<Duration> last_call{};
  std::shared_ptr<const JobTls> tls{};  // null: connections are plain
};

// Returns the exit code: 0 after the job's success and after a request to leave.
int run_rendezvous_client(const RendezvousClientOptions& options);

}  // namespace cpprun

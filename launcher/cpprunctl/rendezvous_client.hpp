// `cpprunctl rendezvous-client`: takes part in a job for a launcher of its own, such as torchrun
// with cpprun's plug-in, which starts this command. docs/how-to/torchrun-plugin.md.
#pragma once

#include <string>

#include "common/limits/rendezvous.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "launcher/cpprunctl/tls_options.hpp"

namespace cpprun {

struct RendezvousClientCommand {
  std::string endpoint;  // HOST[:PORT]
  std::string run_id = "none";
  std::string nnodes = "1";  // N or MIN:MAX
  std::string local_addr;
  double join_timeout = to_seconds(limits::kJoinTimeout);  // seconds, as the next two
  double connect_timeout = to_seconds(limits::kFirstConnectTimeout);
  double last_call_timeout = -1;  // negative: the coordinator's default
  TlsOptions tls{};
};

// Runs until the job has ended, or standard input. Returns the exit code.
Result<int> rendezvous_client(const RendezvousClientCommand& command);

}  // namespace cpprun

// What a coordinator needs from the system: host name, a term from the wall clock, secrets. System
// calls only, no Asio.
#pragma once

#include <string>

#include "rendezvous/coordinator/coordinator.hpp"

namespace cpprun {

// The term is greater than that of every earlier coordinator at this endpoint, unless the clock
// went back. The options name no agent in the process; the caller may set one.
CoordinatorOptions coordinator_options();

// The MAC of the announcement that a job is led from its address, made with the key of the job
// (R10, R17).
std::string mac_of_leader(const std::string& job_key, const std::string& run_id,
                          const control::AnnounceLeader& message);

// 32 random hex digits: the secret of snapshot transfers, and nonces.
std::string random_secret();

// Raises the soft limit to the hard limit: each agent and each store client needs a descriptor.
void raise_descriptor_limit();

}  // namespace cpprun

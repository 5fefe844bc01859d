// What the faults of a round and of node checks have for consequences: which hosts are excluded,
// and whether the round costs a restart. Pure.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/failure_record.hpp"
#include "rendezvous/coordinator/job_state.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// Counts the faults of the round that is over. A failure that ends in the exclusion of its host
// costs no restart, if the others can continue. Returns the hosts that are excluded from now on.
// `cause`: why the round was stopped.
std::vector<std::string> count_faults_of_round(control::StopCause cause,
                                               const control::JobSpec& job_spec,
                                               const NodeTable& nodes, JobState& state,
                                               FailureRecord& failures);

// "n1 is excluded: 2 failures; ...; a spare takes its place"
std::string exclusion_text(const std::string& host, const control::JobSpec& job_spec,
                           const NodeTable& nodes, const JobState& state,
                           const FailureRecord& failures);

}  // namespace cpprun

// What a node without a place in the round is waiting for, and whether it should wait at all. Pure.
//
// Without --rdzv-id every job has the same name. An agent that meets a full job of that name most
// likely belongs to another one: as a spare it would end with the success of a job that is not its
// own, so the coordinator refuses it. An agent with a run id waits as a spare, and a node that took
// part in the job belongs to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/coordinator/job_state.hpp"
#include "rendezvous/coordinator/lease_tracker.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/coordinator/rounds/round.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// Why the node is in no round now. `stopping`: members of the last round that still have workers.
// `rivals`: other jobs that wait for nodes at this coordinator.
std::string why_no_round(JobPhase phase, const JobState& state, const control::JobSpec& job_spec,
                         const NodeTable& nodes, size_t stopping,
                         const std::vector<std::string>& rivals);

// Why this node takes part in no round, whatever the job waits for: its host is excluded, or its
// check has failed. "": it may take part.
std::string why_left_out(const Node& node, const HostLedger& hosts);

// What the job does without an excluded host, for people. `usable`: nodes that can be in the next
// round; `members`: of the last one.
std::string what_follows(int64_t usable, const control::JobSpec& job_spec, size_t members);

// Sends an unwanted node a refusal.
void refuse_unwanted(const Node& node, const std::string& why, const Round& round,
                     const NodeTable& nodes, Effects& effects);

// Whether the running `round`, with at most `max_nodes` nodes, has no place for `node`, and `node`
// should not wait for one.
bool is_unwanted(const Node& node, const Round& round, int64_t max_nodes, const NodeTable& nodes,
                 const LeaseTracker& leases);

// The member that the newcomer's user can find most easily: on the same host, else the first in
// rank order.
control::Occupant occupant_for(const Node& newcomer, const Round& round, const NodeTable& nodes);

}  // namespace cpprun

// Whether a hello and a registration make sense by themselves, and whether a job takes the node.
// Pure.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

bool is_short(const std::string& name);  // a name or an address

// The version, the run id and the node's name appear in log lines and in texts for people.
bool is_sane(const control::Hello& hello);
// Every number is within its range, and every text within its length.
bool is_sane(const control::Register& message);

// Whether a job with these nodes and settings takes the node. The error is for the user of that
// agent.
Status check_registration(const NodeTable& nodes, const control::Hello& hello,
                          const control::Register& message, const control::JobSpec& job_spec,
                          const std::string& run_id);

}  // namespace cpprun

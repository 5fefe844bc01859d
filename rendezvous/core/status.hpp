// The coordinator's state as JSON: what /status serves. Field names are an interface
// (docs/protocol.md, "HTTP").
#pragma once

#include <string>

#include "rendezvous/core/coordinator.hpp"

namespace cpprun {

std::string status_json(const Coordinator& coordinator);

// "gathering", "running", "stopping", "deciding", "ended".
const char* name_of(Membership::Phase phase);
// "idle", "starting", "running", "stopped", "done"; or "dead", "silent", "draining".
const char* name_of(const Node& node);

}  // namespace cpprun

// The coordinator's state as JSON: what /status serves. Field names are an interface
// (docs/protocol.md, "HTTP").
#pragma once

#include <string>

#include "rendezvous/core/coordinator.hpp"

namespace cpprun {

std::string status_json(const Coordinator& coordinator);

}  // namespace cpprun

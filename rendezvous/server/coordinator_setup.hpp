// What a coordinator needs of the system it runs on: its host's name, an epoch from the wall clock,
// secrets. System calls only, no Asio.
#pragma once

#include "rendezvous/core/coordinator.hpp"

namespace cpprun {

// The epoch is greater than that of every coordinator that stood at this endpoint before, as long
// as the clock does not go back. No agent lives in the process; the caller may name one.
CoordinatorOptions coordinator_options();

// One descriptor for each agent and each client of a store: takes what the system allows.
void raise_descriptor_limit();

}  // namespace cpprun

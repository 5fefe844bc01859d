// What a coordinator needs of the system it runs on: its host's name, an epoch from the wall clock,
// secrets. System calls only, no Asio.
#pragma once

#include <string>

#include "rendezvous/coordinator/coordinator.hpp"

namespace cpprun {

// The epoch is greater than that of every coordinator that stood at this endpoint before, as long
// as the clock does not go back. No agent lives in the process; the caller may name one.
CoordinatorOptions coordinator_options();

// 32 hex digits that nobody can guess: what nodes show each other when they fetch a snapshot, and
// what an operator's proof is made over.
std::string random_secret();

// CPPRUN_ADMIN_TOKEN of our environment; "" without it.
std::string operator_token();

// One descriptor for each agent and each client of a store: takes what the system allows.
void raise_descriptor_limit();

}  // namespace cpprun

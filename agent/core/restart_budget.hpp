// Whether the failure of a round is the last one of its job, as far as one agent knows. Pure.
#pragma once

#include <optional>

#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

// `charged`: the budget to which the coordinator has charged the end of the round. `unreported`: a
// failure here that it may not know.
bool ends_job(const control::RankAssignment& assignment, control::RestartCharge charged,
              const std::optional<control::Failed>& unreported);

}  // namespace cpprun::agent

// The restart budgets of a job, as far as one agent knows them. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/core/effects.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

// Restarts after hangs that the job may use in all.
int64_t max_hangs(const control::RankAssignment& assignment);

// Whether the failure of a round is the last one of its job. `charged`: the budget to which the
// coordinator has charged the end of the round. `unreported`: a failure here that it may not know.
bool ends_job(const control::RankAssignment& assignment, control::RestartCharge charged,
              const std::optional<control::Failed>& unreported);

// How many restarts the job has used, of the budget of its last failure.
void add_restarts(const control::RankAssignment& assignment,
                  const std::optional<control::JobResult>& job_result, Finish& how);

}  // namespace cpprun::agent

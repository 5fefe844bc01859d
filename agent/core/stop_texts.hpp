// Texts for the user about the end of a round: why its workers are stopped, and whether a restart
// follows. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "agent/core/effects.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

// The worker lease has ended.
inline constexpr const char* kPastLeaseText =
    "the coordinator has not answered in time; stopping the workers, since the others may continue "
    "without this node";

// "restarting all 4 workers (restart 1 of 3)", or, if workers of this node are asked to regroup,
// "regrouping the other workers (restart 1 of 3)": what follows the failure of a round; "" if the
// budget is used up. Hangs have their own restart count.
std::string restart_text(const control::RankAssignment& assignment, bool is_hang,
                         bool regroups = false);

// "round 2 on this node: 3 workers stay, 1 is replaced"
std::string regrouped_text(RoundNumber round, int64_t kept, int64_t replaced);

// For the coordinator's request to stop the running round. `has_finished`: the workers of this node
// had finished their work. `regroups`: they are asked to. Losses are warnings; the last failure has
// a summary of its own.
LogEvent stop_event(const control::Stop& stop, const control::RankAssignment& assignment,
                    bool has_finished, bool regroups = false);

}  // namespace cpprun::agent

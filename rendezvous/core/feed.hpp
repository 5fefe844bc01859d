// What the dashboard is told: two JSON texts, one that changes with the job (nodes, rounds,
// verdict) and one that changes with every step (how far each rank is).
//
// Nothing of it is escaped for HTML: the page shows text as text. Fields: docs/dashboard.md. Pure.
#pragma once

#include <string>

#include "rendezvous/core/chronicle.hpp"
#include "rendezvous/core/coordinator.hpp"

namespace cpprun {

// One line each. O(nodes) and O(ranks), bounded by limits/dashboard.hpp.
std::string dashboard_state(const Coordinator& coordinator, const Chronicle& chronicle);
std::string dashboard_progress(const Coordinator& coordinator);

}  // namespace cpprun

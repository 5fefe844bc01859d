// Turns what the nodes measured between each other into findings with a cure each. Pure.
#pragma once

#include <vector>

#include "launcher/doctor/checks.hpp"
#include "launcher/doctor/node_facts.hpp"

namespace cpprun::doctor {

// One per check: nodes, versions, reach, names, clocks, latency, speed.
std::vector<Finding> run_cross_node_checks(const NodesFacts& facts);

}  // namespace cpprun::doctor

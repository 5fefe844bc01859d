// What a seed decides: the numbers that a plan leaves open, gaps between random faults, victims.
//
// Pure; the same on every machine and node, whatever was drawn before. Not for secrets.
#pragma once

#include "common/faults/plan.hpp"

namespace cpprun::faults {

// The plan with its ranges settled to single numbers, and a draw for each "any".
Plan drawn(Plan plan, uint64_t seed);

// Time before the `nth` strike (from 0) of this fault since the one before; exponential, so that
// `mean` is the mean time between failures. At least a millisecond.
Duration gap(uint64_t seed, size_t fault, int64_t nth, Duration mean);

// A number for the `nth` strike of this fault; its remainder picks a victim.
uint64_t victim(uint64_t seed, size_t fault, int64_t nth);

}  // namespace cpprun::faults

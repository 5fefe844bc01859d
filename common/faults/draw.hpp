// Random numbers for fault plans: open choices, gaps between random faults, victims.
//
// Pure functions of the seed: the same on every node and in any order of calls. Not for secrets.
#pragma once

#include "common/faults/plan.hpp"

namespace cpprun::faults {

// The plan with each range reduced to one number, and with a random number for each "any".
Plan drawn(Plan plan, uint64_t seed);

// Time between the previous injection of this fault and the `nth` (from 0); exponentially
// distributed, so that `mean` is the mean time between failures. At least a millisecond.
Duration gap(uint64_t seed, size_t fault, int64_t nth, Duration mean);

// Random number for the `nth` injection of this fault; the caller takes its remainder.
uint64_t victim(uint64_t seed, size_t fault, int64_t nth);

}  // namespace cpprun::faults

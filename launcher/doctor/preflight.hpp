// The doctor's quick look at a machine, before each start of a job there: what can be read without
// the network, without a trial file, in about a millisecond.
#pragma once

#include <vector>

#include "launcher/doctor/checks.hpp"

namespace cpprun::doctor {

// What is wrong, of the checks that are quick: warnings and problems only. Pure. That
// CUDA_VISIBLE_DEVICES names GPUs where there is none at all is no news: CPU jobs do that.
std::vector<Finding> preflight_findings(Facts facts);

// The facts that those checks look at, of this machine.
Facts preflight_facts(int nproc);

}  // namespace cpprun::doctor

// The doctor's quick check of a machine, before each start of a job there: what can be read in
// about a millisecond, without the network and without a trial file.
#pragma once

#include <vector>

#include "launcher/doctor/checks.hpp"

namespace cpprun::doctor {

// Warnings and problems of the quick checks. Pure. A CUDA_VISIBLE_DEVICES that names GPUs on a
// machine without any is no finding here: CPU jobs do that on purpose.
std::vector<Finding> preflight_findings(Facts facts);

// The facts that those checks need, of this machine.
Facts preflight_facts(int nproc);

}  // namespace cpprun::doctor

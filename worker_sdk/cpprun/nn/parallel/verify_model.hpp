// Do all ranks wrap the same model with the same options? Asked through the group's store before
// the first collective, since a collective between different models hangs or mixes up tensors.
// Private to nn.
//
// Only ranks that run this SDK take part; ranks of Python in the same job are left to the checks
// that LibTorch makes on both sides.
#pragma once

#include <string>
#include <vector>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn::parallel {

// One line each, the same on all ranks if they agree: "parameter fc1.weight float [10, 64]".
using Description = std::vector<std::string>;

// Throws DistMismatchError naming two ranks and the first difference, on all ranks;
// DistTimeoutError naming the ranks that did not come within the group's timeout.
void verify_across_ranks(const dist::ProcessGroup& group, const Description& own);

// What differs first between the descriptions of two ranks; for tests as well.
std::string first_difference(const Description& a, int rank_a, const Description& b, int rank_b);

}  // namespace cpprun::nn::parallel

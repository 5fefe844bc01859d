// Checks that all ranks wrap the same model with the same options. Uses the group's store before
// the first collective that depends on the model, because such a collective between different
// models hangs or mixes up tensors. Private to nn.
//
// Only ranks that run this SDK take part; Python ranks of the job are left to the checks that
// LibTorch makes on both sides.
#pragma once

#include <string>
#include <vector>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn::parallel {

// One line per option and tensor, the same on all ranks: "parameter fc1.weight float [10, 64]".
using Description = std::vector<std::string>;

// Throws DistMismatchError with two ranks and the first difference on all ranks, or
// DistTimeoutError with the ranks that did not arrive within the group's timeout.
void verify_across_ranks(const dist::ProcessGroup& group, const Description& own);

// The first difference between the descriptions of two ranks.
std::string first_difference(const Description& a, int rank_a, const Description& b, int rank_b);

}  // namespace cpprun::nn::parallel

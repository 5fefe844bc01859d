// Finds the ranks of a group that run this SDK; the others run Python. Private to nn.
#pragma once

#include <vector>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn::parallel {

// Ranks within the group, ascending, including this rank.
std::vector<int> sdk_ranks(const dist::ProcessGroup& group);

}  // namespace cpprun::nn::parallel

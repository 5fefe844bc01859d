// Which ranks of a group run this SDK? The others run Python. Private to nn.
#pragma once

#include <vector>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn::parallel {

// Ranks within the group, rising; this rank among them.
std::vector<int> sdk_ranks(const dist::ProcessGroup& group);

}  // namespace cpprun::nn::parallel

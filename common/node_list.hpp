// Slurm's compressed lists of node names, such as "n[01-03,7],login". Pure. An own parser, because
// scontrol, which expands them, is missing in containers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

// All names in their order, at most limits::kNodesPerJob. A name may hold several brackets
// ("rack[0-1]n[1-2]") and text after them; numbers keep the width of a range's first number. Errors
// name the part that is malformed.
Result<std::vector<std::string>> expand_node_list(std::string_view list);

}  // namespace cpprun

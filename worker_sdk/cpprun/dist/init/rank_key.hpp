// The key that a rank of this SDK leaves in its group's store, and ranks of Python do not: the roll
// call writes it, DistributedDataParallel finds its like by it. Private.
#pragma once

#include <string>

namespace cpprun::dist {

// `rank` within the group.
inline std::string rank_key(int rank) {
  return "cpprun/rank/" + std::to_string(rank);
}

}  // namespace cpprun::dist

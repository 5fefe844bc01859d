// The key that each rank of this SDK, unlike a Python rank, sets in its group's store.
// register_rank sets it; DistributedDataParallel looks for it to find out whether all ranks use
// this SDK. Private.
#pragma once

#include <string>

namespace cpprun::dist {

// `rank`: in the group.
inline std::string rank_key(int rank) { return "cpprun/rank/" + std::to_string(rank); }

}  // namespace cpprun::dist

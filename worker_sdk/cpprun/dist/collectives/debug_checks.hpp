// Debug checks: before each collective the ranks compare what they are about to do. Private to
// dist.
#pragma once

#include <string>

#include "cpprun/dist/collectives/call.hpp"

namespace cpprun::dist {

// Through the group's store, so that nothing has gone over the backend when it fails. A difference
// is a DistMismatchError with the same text on all ranks; a rank that does not come within the
// group's timeout is a DistTimeoutError that names it.
void compare_across_ranks(const Call& call, const std::string& text, const Exchange& exchange);

// The group's ranks whose `prefix` + rank is not in the store at `deadline`, as global ranks.
// Returns as soon as all are there. Store errors are translated.
std::vector<int> missing_ranks(const Call& call, const std::string& prefix,
                               std::chrono::milliseconds timeout);
// "1, 3".
std::string listed(const std::vector<int>& ranks);

}  // namespace cpprun::dist

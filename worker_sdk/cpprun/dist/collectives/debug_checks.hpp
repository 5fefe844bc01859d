// Debug checks: before each collective the ranks compare their calls. Private to dist.
#pragma once

#include <string>

#include "cpprun/dist/collectives/call.hpp"

namespace cpprun::dist {

// Compares through the group's store, so that nothing has been sent over the backend if it fails. A
// difference is a DistMismatchError with the same text on all ranks. A rank that does not arrive
// within the group's timeout is a DistTimeoutError that names it.
void compare_across_ranks(const Call& call, const std::string& text, const Exchange& exchange);

// Waits until the key `prefix` + rank of every rank of the group is in the store, at most
// `timeout`. Returns the global ranks whose keys are missing. Translates the store's errors.
std::vector<int> missing_ranks(const Call& call, const std::string& prefix,
                               std::chrono::milliseconds timeout);

}  // namespace cpprun::dist

// One attempt to connect to an endpoint by TCP, at every address of its name. Internal to the
// worker SDK.
#pragma once

#include "common/endpoint.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "rendezvous/client/store/deadline.hpp"

namespace cpprun::worker {

// Returns a connected socket: non-blocking, no delay, close-on-exec. Resolves a name each time,
// with the resolver's own time limit only. The error (Network) names the last address tried and its
// errno.
Result<UniqueFd> dial(const Endpoint& endpoint, Deadline deadline);

}  // namespace cpprun::worker

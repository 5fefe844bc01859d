// One try to reach an endpoint by TCP, at every address that its name has. For the worker's own
// sources.
#pragma once

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "rendezvous/client/store/deadline.hpp"
#include "rendezvous/client/store/descriptor.hpp"

namespace cpprun::worker {

// A connected, non-blocking socket without delay, closed on exec. The name is looked up anew (a
// look-up has only the resolver's own time limit); numbers need none. The error (Network) names the
// last address tried and its errno.
Result<Descriptor> dial(const Endpoint& endpoint, Deadline deadline);

}  // namespace cpprun::worker

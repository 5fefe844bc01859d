// sanitize(): cuts the texts of a peer's message to the lengths that we keep, show and forward, and
// removes control characters that a terminal would carry out.
//
// Peers may run foreign code, so the receiver cuts too. A text that the codec accepts fitted into
// its own frame but need not fit into one together with others.
#pragma once

#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::control {

AgentMessage sanitize(AgentMessage message);
CoordinatorMessage sanitize(CoordinatorMessage message);
JobResult sanitize(JobResult decided);

}  // namespace cpprun::control

// Plain: messages of peers with their texts cut to what we keep, show and send on, and without what
// terminals would carry out.
//
// Not every peer is a program of ours, so a text is cut where it comes in. What the codec lets
// through would fit into the frame that it came in, but not into one with more beside it.
#pragma once

#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::control {

AgentMessage sanitize(AgentMessage message);
JobResult sanitize(JobResult decided);

}  // namespace cpprun::control

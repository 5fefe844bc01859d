// The JSON lines between `cpprunctl rendezvous-client` and the program that started it: requests on
// standard input, events on standard output, one object per line. docs/how-to/torchrun-plugin.md
// lists them. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

struct RendezvousRequest {
  enum class What {
    Next,   // {"op":"next"}: the workers of this node are gone; take part in the next round
    Close,  // {"op":"close"}: the workers of this node have succeeded
    Fail    // {"op":"fail","why":"..."}: the job has failed on this node
  } what = What::Next;
  std::string why;
};

// Error: the line is no request.
Result<RendezvousRequest> parse_rendezvous_request(std::string_view line);

// How the client ends.
enum class RendezvousEnd {
  Succeeded,
  Failed,        // the coordinator's result
  Left,          // the program has closed standard input
  NoConnection,  // no coordinator was ever reached
  Timeout,       // no round within the join timeout
  Error          // refused, or another error
};

// Each with its newline. `store`: of the round, at the coordinator.
std::string round_line(const control::RankAssignment& round, const Endpoint& store);
// The workers of this node have to stop; `why` for people.
std::string restart_line(const std::string& why);
std::string end_line(RendezvousEnd how, const std::string& text);

}  // namespace cpprun

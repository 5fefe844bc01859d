// Orders to a coordinator elsewhere, over TCP: challenge and response (docs/protocol.md, "Orders").
#pragma once

#include <string>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/admin/orders.hpp"

namespace cpprun::ctl {

// What the coordinator says to it. Blocking, within limits::kOperatorAnswers. Error: it can't be
// reached, refuses, or is none.
Result<std::string> give_order(const Endpoint& endpoint, const std::string& token,
                               control::Command command);

}  // namespace cpprun::ctl

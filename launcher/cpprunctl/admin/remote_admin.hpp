// Sends admin commands to a remote coordinator over TCP, authenticated by challenge and response
// (docs/protocol.md, "Admin commands").
#pragma once

#include <string>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun::ctl {

// Returns the coordinator's reply. Blocks for limits::kAdminReplyTimeout at most. Errors: nothing
// answers at the endpoint, it is not a coordinator, or it refuses the command.
Result<std::string> send_admin_command(const Endpoint& endpoint, const std::string& token,
                                       control::AdminRequest command);

}  // namespace cpprun::ctl

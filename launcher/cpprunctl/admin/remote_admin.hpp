// Admin commands to a coordinator elsewhere, over TCP: challenge and response (docs/protocol.md,
// "Admin commands").
#pragma once

#include <string>

#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun::ctl {

// What the coordinator says to it. Blocking, within limits::kAdminReplyTimeout. Error: it can't be
// reached, refuses, or is none.
Result<std::string> send_admin_command(const Endpoint& endpoint, const std::string& token,
                                       control::AdminRequest command);

}  // namespace cpprun::ctl

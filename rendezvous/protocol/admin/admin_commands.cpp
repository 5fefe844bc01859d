#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun::control {
namespace {

// The length in front makes the concatenation unambiguous.
std::string field(const std::string& text) {
  return std::to_string(text.size()) + ":" + text + "\n";
}

}  // namespace

std::string admin_mac_input(const std::string& nonce, const AdminRequest& request) {
  const AdminCommand& command = request.command;
  return "cpprun-admin-1\n" + field(nonce) + field(request.run_id) + field(command.node) +
         field(command.reason) + std::to_string(static_cast<int64_t>(command.kind)) + " " +
         std::to_string(command.nodes) + " " + (command.is_resumable ? "1" : "0") + "\n";
}

}  // namespace cpprun::control

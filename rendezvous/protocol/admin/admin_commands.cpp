#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun::control {
namespace {

// The length in front makes the concatenation unambiguous.
std::string field(const std::string& text) {
  return std::to_string(text.size()) + ":" + text + "\n";
}

}  // namespace

std::string admin_mac_input(const std::string& nonce, const AdminRequest& command) {
  const AdminCommand& order = command.order;
  return "cpprun-admin-1\n" + field(nonce) + field(command.run_id) + field(order.node) +
         field(order.reason) + std::to_string(static_cast<int64_t>(order.kind)) + " " +
         std::to_string(order.nodes) + " " + (order.is_resumable ? "1" : "0") + "\n";
}

}  // namespace cpprun::control

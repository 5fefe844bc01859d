// Admin commands: what an operator asks of a whole job, as messages of the control protocol. Plain
// data, included by control.hpp.
//
// The operator's tool sends a command to an agent, and the agent forwards it; the coordinator
// decides what it means (rendezvous/coordinator/admin_command_handler.cpp) and replies. If the job
// has an admin token, the coordinator sends a Challenge first, and the agent repeats the command
// with a MAC as an AdminRequest. docs/protocol.md, "Admin commands".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cpprun::control {

enum class AdminCommandKind : int64_t {
  Restart,  // all workers, now; costs no budget
  Stop,     // all nodes leave
  Drain,    // one node saves and leaves
  Scale,    // at most so many nodes from now on
  Exclude,  // no agent of a host takes part in rounds from now on
  Readmit   // they do again
};

// Agent to coordinator.

struct AdminCommand {
  int64_t id = 0;  // chosen by the agent; the reply carries it
  AdminCommandKind kind = AdminCommandKind::Restart;
  bool is_resumable = false;  // Stop: workers save first
  std::string node{};         // Drain, Exclude, Readmit: its name, or its group rank
  int64_t nodes = 0;          // Scale
  std::string reason{};       // Exclude: for people
};

// An operator's tool to coordinator: the first message of its connection. The coordinator replies
// with a Challenge; the tool then sends an AdminRequest.
struct AdminHello {
  int64_t protocol = 0;  // kProtocolVersion
  std::string version;   // of the program, for people
};
// From a tool: the coordinator replies with an AdminReply, or with Refused if the MAC is wrong, and
// closes the connection. From an agent: the coordinator replies with an AdminReply, and the
// connection stays open.
struct AdminRequest {
  std::string run_id;  // "" = the only job
  AdminCommand command;
  std::string mac{};  // HMAC of admin_mac_input() with the admin token
};

// Coordinator to tool or agent.

struct Challenge {
  std::string nonce;  // random; valid for one MAC
  int64_t id = 0;     // AdminCommand::id of the agent's command; 0: to a tool
};

// Coordinator to agent.

struct AdminReply {
  int64_t id = 0;
  bool is_done = false;
  std::string text;  // for people: what was done, or why it was not
};

// The agent leaves as after a signal: SIGTERM if `saves`, otherwise SIGINT. An agent that is
// leaving already does not hurry more.
struct ShutdownRequest {
  bool saves = false;
  std::string why;
  bool others_continue = false;  // a drain that leaves the job enough nodes
};

// Names of the kinds, as cpprunctl sends them to an agent's admin socket.

inline constexpr AdminCommandKind kAdminCommandKinds[] = {
    AdminCommandKind::Restart, AdminCommandKind::Stop,    AdminCommandKind::Drain,
    AdminCommandKind::Scale,   AdminCommandKind::Exclude, AdminCommandKind::Readmit};

constexpr const char* name_of(AdminCommandKind kind) {
  switch (kind) {
    case AdminCommandKind::Restart: return "restart";
    case AdminCommandKind::Stop: return "stop";
    case AdminCommandKind::Drain: return "drain";
    case AdminCommandKind::Scale: return "scale";
    case AdminCommandKind::Exclude: return "exclude";
    case AdminCommandKind::Readmit: return "readmit";
  }
  return "";
}

// Empty: no admin command has this name.
constexpr std::optional<AdminCommandKind> admin_command_kind(std::string_view name) {
  for (const AdminCommandKind kind : kAdminCommandKinds) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

// The input of the MAC: the nonce and all fields of the command. Both sides compute it from decoded
// fields, so another encoding of the same command gives the same MAC.

std::string admin_mac_input(const std::string& nonce, const AdminRequest& request);

}  // namespace cpprun::control

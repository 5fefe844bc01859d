// What an operator asks of a whole job, as messages of the control protocol. Plain data, included
// by control.hpp.
//
// An admin command comes from the agent that the operator's tool has reached; the coordinator
// decides what it means (rendezvous/coordinator/job_admin.cpp) and answers. Where the job
// has an admin token, the coordinator answers with a challenge first, and the agent says the order
// again as a command. docs/protocol.md, "Admin commands".
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
  Scale     // at most so many nodes from now on
};

// ---------------------------------------------------------------- agent -> coordinator

struct AdminCommand {
  int64_t id = 0;  // the asker's own; comes back with the answer
  AdminCommandKind kind = AdminCommandKind::Restart;
  bool is_resumable = false;  // Stop: workers save first
  std::string node{};         // Drain: its name, or its group rank
  int64_t nodes = 0;          // Scale
};

// ---------------------------------------------------------------- an operator's tool ->
// coordinator

// First message of a connection that is no agent's: an admin command follows. Answered by
// Challenge.
struct AdminHello {
  int64_t protocol = 0;  // kProtocolVersion
  std::string version;   // of the program, for people
};
// Answered by Answer, or by Refused if the proof is wrong; either ends the connection of a tool. To
// an agent the answer is an Answer, and its connection goes on.
struct AdminRequest {
  std::string run_id;  // "" = the only job
  AdminCommand order;
  std::string mac{};  // that who gives it knows the token: admin_commands.hpp
};

// ---------------------------------------------------------------- coordinator -> tool, agent

struct Challenge {
  std::string nonce;  // random; for one proof
  int64_t id = 0;     // of the agent's order that needs the proof; 0: to a tool
};

// ---------------------------------------------------------------- coordinator -> agent

struct AdminReply {
  int64_t id = 0;
  bool is_done = false;
  std::string text;  // for people: what was done, or why it was not
};

// Leave, as by a signal: with `saves` as by SIGTERM, else as by SIGINT. Who is leaving already need
// not hurry.
struct ShutdownRequest {
  bool saves = false;
  std::string why;
};

// The kinds of admin commands as words: what cpprunctl says to an agent, and the agent reads.

inline constexpr AdminCommandKind kAdminCommandKinds[] = {
    AdminCommandKind::Restart, AdminCommandKind::Stop, AdminCommandKind::Drain,
    AdminCommandKind::Scale};

// "restart", "stop", "drain", "scale".
constexpr const char* name_of(AdminCommandKind kind) {
  switch (kind) {
    case AdminCommandKind::Restart:
      return "restart";
    case AdminCommandKind::Stop:
      return "stop";
    case AdminCommandKind::Drain:
      return "drain";
    case AdminCommandKind::Scale:
      return "scale";
  }
  return "";
}

// Nothing: no admin command is called so.
constexpr std::optional<AdminCommandKind> admin_command_kind(std::string_view name) {
  for (const AdminCommandKind kind : kAdminCommandKinds) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

// What an operator's tool proves its knowledge of the token over: the coordinator's nonce and the
// whole order. Both sides write it down from what the messages mean, so that other bytes for the
// same meaning change nothing. Pure.

std::string admin_mac_input(const std::string& nonce, const AdminRequest& command);

}  // namespace cpprun::control

// Impostor: a peer that sends a hello with the id of a node, sends what it was made with, and then
// stays silent (R10). CoordinatorProcess checks that the coordinator rejects it.
#pragma once

#include <vector>

#include "rendezvous/protocol/control/control.hpp"
#include "tests/support/sim/sim_context.hpp"

namespace cpprun::sim {

inline constexpr HostId kImpostorHost = 800'000;
inline constexpr const char* kImpostorName = "impostor";  // no node has this name

enum class ImpostorKind {
  WithoutKey,    // a greater connection number, but no key
  Duplicate,     // the node's key and its first connection number: a copy of the agent
  Replay,        // what the node has sent on its connection so far
  Unregistered,  // the same without the registration
};

class Impostor final : public Program {
 public:
  Impostor(SimContext& context, HostId to, int port, control::Hello hello,
           std::vector<control::AgentMessage> messages);

  void on_dialled(ConnectionId connection, bool is_connected, const std::string& why) override;
  void on_accepted(ConnectionId) override {}
  void on_bytes(ConnectionId, std::span<const uint8_t>) override {}
  void on_ended(ConnectionId connection, Ending how) override;

 private:
  SimContext& context_;
  const control::Hello hello_;
  const std::vector<control::AgentMessage> messages_;  // after the hello
  ProgramId program_ = 0;
};

}  // namespace cpprun::sim

// Impostor: an agent that says hello with the id of a node, a greater connection number, and
// without the node's key (R10). Then it stays silent. CoordinatorProcess checks that the
// coordinator rejects it.
#pragma once

#include "rendezvous/protocol/control/control.hpp"
#include "tests/support/sim/sim_context.hpp"

namespace cpprun::sim {

inline constexpr HostId kImpostorHost = 800'000;
inline constexpr const char* kImpostorName = "impostor";  // no node has this name

class Impostor final : public Program {
 public:
  Impostor(SimContext& context, HostId to, int port, control::Hello hello, control::Register facts);

  void on_dialled(ConnectionId connection, bool is_connected, const std::string& why) override;
  void on_accepted(ConnectionId) override {}
  void on_bytes(ConnectionId, std::span<const uint8_t>) override {}
  void on_ended(ConnectionId connection, Ending how) override;

 private:
  SimContext& context_;
  const control::Hello hello_;
  const control::Register facts_;
  ProgramId program_ = 0;
};

}  // namespace cpprun::sim

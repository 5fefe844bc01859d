// LeaderAnnouncer: a standby that became coordinator announces itself at the job's endpoint (R17).
// The shell around the real core, as rendezvous/client/leader_announcer is.
#pragma once

#include <functional>
#include <optional>

#include "rendezvous/client/core/leader_announcer_core.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "tests/support/sim/sim_context.hpp"

namespace cpprun::sim {

class LeaderAnnouncer final : public Program {
 public:
  LeaderAnnouncer(SimContext& context, HostId host, control::Hello hello,
                  std::function<control::AnnounceLeader()> message);
  void end();
  void set_frozen(bool is_frozen);

  void on_dialled(ConnectionId connection, bool is_connected, const std::string& why) override;
  void on_accepted(ConnectionId) override {}
  void on_bytes(ConnectionId, std::span<const uint8_t>) override { core_.on_answer(); }
  void on_ended(ConnectionId connection, Ending how) override;

 private:
  void dial();
  void dial_later();
  void send(Bytes bytes);
  void tick();
  void on_time();

  SimContext& context_;
  const control::Hello hello_;
  const std::function<control::AnnounceLeader()> message_;
  LeaderAnnouncerCore core_;
  ProgramId program_ = 0;
  std::optional<ConnectionId> connection_;
  bool is_alive_ = true;
  bool is_frozen_ = false;
};

}  // namespace cpprun::sim

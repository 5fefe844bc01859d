// CoordinatorProcess: the real Coordinator in a process of its own, or beside an agent in the same
// one. This is the shell around the core, as rendezvous/server is: sessions, frames, one timer.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/core/coordinator.hpp"
#include "rendezvous/core/patience.hpp"
#include "tests/support/sim/host_clock.hpp"
#include "tests/support/sim/surroundings.hpp"

namespace cpprun::sim {

struct CoordinatorSpec {
  HostId host = 0;
  HostClock clock;
  CoordinatorOptions options;
  double port_fails = 0;  // chance that no port for a store can be opened
};

class CoordinatorProcess final : public Program {
 public:
  CoordinatorProcess(Surroundings& around, CoordinatorSpec spec);

  // ---- faults
  void kill(bool is_reset);
  void lose_power() { is_alive_ = false; }
  void freeze();
  void thaw();
  void set_port_fails(double chance) { spec_.port_fails = chance; }

  // ---- what can be seen
  bool is_alive() const { return is_alive_; }
  bool is_frozen() const { return is_frozen_; }
  const CoordinatorSpec& spec() const { return spec_; }
  const Coordinator& core() const { return core_; }
  const Membership* job(const std::string& run_id) const;

  // Program
  void on_dialled(ConnectionId, bool, const std::string&) override {}
  void on_accepted(ConnectionId connection) override;
  void on_bytes(ConnectionId connection, std::span<const uint8_t> bytes) override;
  void on_ended(ConnectionId connection, Ending how) override;

 private:
  struct Session {
    Bytes input;
    bool has_spoken = false;
    std::optional<control::Hello> hello;
  };

  Instant local_now() const { return spec_.clock.local(around_.agenda.now()); }
  void trace(const std::string& what) const {
    around_.trace.line(around_.agenda.now(), "head", what);
  }
  void tell_core(const std::function<void(Instant, Effects&)>& call);
  void carry_out(const Send& effect);
  void carry_out(const Close& effect);
  void carry_out(const WantStorePort& effect);
  void carry_out(const ServeStore&) {}
  void carry_out(const DropStores&) {}
  void carry_out(const Note& effect);
  void take_frames(ConnectionId connection);
  void hear(ConnectionId connection, const control::AgentMessage& message);
  void drop(ConnectionId connection, Ending how);
  void arm_timer();
  void on_timer();

  Surroundings& around_;
  CoordinatorSpec spec_;
  Dice dice_;
  ProgramId program_ = 0;
  Coordinator core_;
  Patience patience_;
  std::map<ConnectionId, Session> sessions_;
  std::deque<Effect> queue_;
  bool is_carrying_out_ = false;
  Instant armed_for_ = Instant::never();  // true time
  int64_t ports_ = 50'000;
  bool is_alive_ = true;
  bool is_frozen_ = false;
};

}  // namespace cpprun::sim

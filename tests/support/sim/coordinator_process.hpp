// CoordinatorProcess: the real Coordinator, in its own process or beside an agent. This class is
// the shell around the core, as rendezvous/server is: sessions, frames, one timer.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/coordinator/late_wakeup_guard.hpp"
#include "tests/support/sim/coordinator_checks.hpp"
#include "tests/support/sim/host_clock.hpp"
#include "tests/support/sim/impostor.hpp"
#include "tests/support/sim/leader_announcer.hpp"
#include "tests/support/sim/one_shot_timer.hpp"
#include "tests/support/sim/redirect_checks.hpp"
#include "tests/support/sim/sim_context.hpp"

namespace cpprun::sim {

struct CoordinatorSpec {
  HostId host = 0;
  int port = kJobPort;
  bool is_asleep = false;  // an agent's control port: it listens, and accepts nothing
  std::string label = "head";
  HostClock clock;
  CoordinatorOptions options;
  double port_fails = 0;  // probability that no port for a store can be opened
};

class CoordinatorProcess final : public Program {
 public:
  CoordinatorProcess(SimContext& context, CoordinatorSpec spec);

  // The agent of this process becomes coordinator (R16).
  void wake(CoordinatorOptions options);
  // With a leader lease (R18): the state that must be persisted before any further message; then
  // on_persisted().
  void when_persisting(std::function<void(const control::PersistedJobState&)> write) {
    persist_state_ = std::move(write);
  }
  void on_persisted();
  void lead_until(Instant until);
  // Another coordinator leads, or may lead: this one falls silent immediately, and may start again.
  void depose();
  bool is_idle() const { return core_ == nullptr || core_->is_idle(); }
  void when_ended(std::function<void()> then) { on_ended_ = std::move(then); }
  // The agent of this process has ended; the coordinator ends when no node needs it any more.
  // `is_exiting`: as Coordinator::on_host_agent_ended().
  void end_when_idle(bool is_exiting);

  // ---- faults
  void kill(bool is_reset);
  void lose_power();
  void freeze();
  void thaw();
  // Stops reading for a while: input queues up, and its timers run.
  void stop_reading();
  void read_again();
  void set_port_fails(double chance) { spec_.port_fails = chance; }

  // ---- observation
  bool is_alive() const { return is_alive_; }
  bool is_frozen() const { return is_frozen_; }
  const CoordinatorSpec& spec() const { return spec_; }
  bool is_awake() const { return core_ != nullptr; }
  const Job* job(const std::string& run_id) const;
  // What this node has sent on its newest connection; a limited number of messages.
  std::vector<control::AgentMessage> recorded(Incarnation of) const;

  // Program
  void on_dialled(ConnectionId, bool, const std::string&) override {}
  void on_accepted(ConnectionId connection) override;
  void on_bytes(ConnectionId connection, std::span<const uint8_t> bytes) override;
  void on_ended(ConnectionId connection, Ending how) override;

 private:
  struct Session {
    Bytes input;
    bool has_completed_handshake = false;
    std::optional<control::Hello> hello;
    bool is_impostors() const { return hello && hello->node.name == kImpostorName; }
  };

  // A message for a connection that has just ended counts as lost.
  struct Wish {
    Effect effect;
    std::string run_id;
    std::optional<Incarnation> to{};
    bool is_to_impostor = false;
    std::optional<Term> ended_job{};  // the result of a job before the one that is led now
  };

  Instant local_now() const { return spec_.clock.local(context_.event_queue.now()); }
  void trace(const std::string& what) const {
    context_.trace.line(context_.event_queue.now(), spec_.label, what);
  }
  void run_core(const std::function<void(Instant, Effects&)>& call);
  Wish wish_of(Effect effect) const;
  void carry_out_queue();
  void carry_out(const Send& effect);
  void carry_out(const Close& effect);
  void carry_out(const WantStorePort& effect);
  void carry_out(const ServeStore&) {}
  void carry_out(const DropStores&) {}
  void carry_out(const LogEvent& effect);
  void carry_out(const PersistState& effect);
  void take_frames(ConnectionId connection);
  void receive_as_memory(const Job* job, const control::Hello& from,
                         const control::AgentMessage& message);
  bool must_wait_for_exit(const Job* job, const control::AgentMessage& message) const;
  void receive(ConnectionId connection, const control::AgentMessage& message);
  bool is_valid_replay(const Session& session, const control::AgentMessage& message) const;
  void record(Incarnation of, const control::AgentMessage& message);
  void drop(ConnectionId connection, Ending how);
  void arm_timer();
  void on_timer();
  void check_idle();
  void start_leader_announcer();

  SimContext& context_;
  CoordinatorSpec spec_;
  Prng prng_;
  ProgramId program_ = 0;
  std::unique_ptr<Coordinator> core_;                  // none while asleep
  std::unique_ptr<LeaderAnnouncer> leader_announcer_;  // with a job that was taken over
  LateWakeupGuard stuck_after_;
  std::map<std::string, CoordinatorChecks> job_checks_;  // by run id
  std::map<Incarnation, std::vector<control::AgentMessage>> recorded_;
  RedirectChecks handovers_;
  std::map<ConnectionId, Session> sessions_;
  std::deque<Wish> queue_;
  bool is_carrying_out_ = false;
  bool is_writing_ = false;
  std::function<void(const control::PersistedJobState&)> persist_state_;
  std::function<void()> on_ended_;
  OneShotTimer alarm_;
  int64_t ports_ = 50'000;
  bool is_alive_ = true;
  bool is_frozen_ = false;
  bool is_ending_ = false;
};

}  // namespace cpprun::sim

// Candidate: the real Election in an agent's process, and the shell around it. Its requests go to
// the model of etcd, its decisions to the agent and to the coordinator in the same process.
#pragma once

#include <functional>
#include <string>

#include "rendezvous/coordinator/election.hpp"
#include "tests/support/sim/etcd.hpp"
#include "tests/support/sim/host_clock.hpp"
#include "tests/support/sim/one_shot_timer.hpp"
#include "tests/support/sim/sim_context.hpp"

namespace cpprun::sim {

class Candidate {
 public:
  struct Callbacks {
    std::function<void(const election::Elected&)> lead;
    std::function<void(Instant)> extend;
    std::function<void()> written;
    std::function<void(const std::string& why)> lost;
    std::function<void(const control::Leader&)> follow;
    // Now, or when the process runs again.
    std::function<void(std::function<void()>)> when_awake;
  };

  Candidate(SimContext& context, HostId host, HostClock clock, Election::Options options,
            Callbacks callbacks);

  void start();
  // The state of the agent, after each event there.
  void look_at(bool is_led, bool is_willing);
  void write(const control::PersistedJobState& facts);
  void leave(bool is_idle);
  // The process has ended without a message.
  void end() { is_alive_ = false; }
  void set_frozen(bool is_frozen) { is_frozen_ = is_frozen; }
  // Runs due work after a freeze.
  void on_timer();
  bool is_leading() const { return is_alive_ && core_.is_leading(); }

 private:
  Instant local_now() const { return clock_.local(context_.event_queue.now()); }
  void run_core(const std::function<void(Instant, election::Effects&)>& call);
  void carry_out(const election::SendRequest& ask);
  void carry_out(const election::Elected& lead);
  void carry_out(const election::ExtendLease& extend);
  void carry_out(const election::Persisted&) { callbacks_.written(); }
  void carry_out(const election::LeadershipLost& lost) { callbacks_.lost(lost.why); }
  void carry_out(const election::FollowLeader& follow) { callbacks_.follow(follow.leader); }
  void carry_out(const election::Resigned&) { is_alive_ = false; }
  void carry_out(const election::Trouble&) {}
  void judge(Instant until) const;
  void arm_timer();

  SimContext& context_;
  const HostId host_;
  const HostClock clock_;
  const std::string leader_key_;
  const control::Leader self_;
  Callbacks callbacks_;
  Election core_;
  bool is_alive_ = true;
  bool is_frozen_ = false;
  OneShotTimer alarm_;
};

}  // namespace cpprun::sim

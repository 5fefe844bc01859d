// Node: an agent's process on its host, with its reaper process and its workers (NodeWorkers). The
// cores are the real ones (agent::Agent, ReconnectPolicy); this class is the shell around them, as
// agent/daemon is.
//
// Modelled: death of the agent (workers follow within G), the reaper process's deadline, freezing
// of the agent alone or of the whole host, a clock that drifts, workers that fail, hang, ignore
// TERM or can't be started.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/agent.hpp"
#include "common/failure/worker_exit.hpp"
#include "rendezvous/client/core/reconnect_policy.hpp"
#include "tests/support/sim/candidate.hpp"
#include "tests/support/sim/coordinator_process.hpp"
#include "tests/support/sim/node_spec.hpp"
#include "tests/support/sim/node_workers.hpp"
#include "tests/support/sim/one_shot_timer.hpp"
#include "tests/support/sim/sim_context.hpp"

namespace cpprun::sim {

class Node final : public Program {
 public:
  Node(SimContext& context, NodeSpec spec);

  void start();
  // ---- faults
  void kill(bool is_reset);
  void freeze();  // the agent alone: SIGSTOP
  void pause();   // the whole host: a suspended virtual machine
  void thaw();    // ends either freeze
  void lose_power();
  void stop_reading();            // input queues up, timers run
  void read_again();              // ends the pause
  void fill_disk(Instant until);  // true time: saves and fetches fail here until then
  // A fault of the job's plan is about to be injected here.
  void request_fault_permit(int64_t fault, int64_t times);
  void signal(int number);
  // An admin command on this host; without a connection it has no effect.
  void order(const control::AdminCommand& order) { carry_out(agent::SendMessage{order}); }
  // Runs this right after the agent's next message, so that the answer finds a changed state.
  void after_next_message(std::function<void()> fault) { after_message_ = std::move(fault); }
  // What --node-check reports from now on; "": the node is good.
  void set_check_result(std::string why) { check_result_ = std::move(why); }
  // A worker ends by itself immediately.
  void fail_worker(size_t local_rank, int exit_code) { workers_.fail(local_rank, exit_code); }
  // A worker hangs, and the agent has noticed it.
  void hang_worker(size_t local_rank);

  // ---- observation
  const NodeSpec& spec() const { return spec_; }
  const NodeId& id() const { return spec_.agent.hello.node; }
  const std::string& label() const { return spec_.label; }
  bool is_paused() const { return workers_.are_paused(); }
  agent::Agent::State state() const { return core_.state(); }
  bool is_alive() const { return is_alive_; }  // the process; it may have ended with success
  bool is_frozen() const { return is_frozen_; }
  bool is_running() const { return is_alive_ && !finish_; }
  Term term() const { return term_; }
  const std::optional<control::RankAssignment>& assignment() const { return assignment_; }
  const std::optional<agent::Finish>& finish() const { return finish_; }
  std::optional<ConnectionId> connection() const { return connection_; }
  bool knows_outcome() const { return knows_outcome_; }
  int64_t live_workers() const { return workers_.live(); }
  bool has_running_workers() const {
    return workers_.has_running();
  }  // workers that survived SIGKILL
  // The coordinator in its process, active or not; null: none.
  CoordinatorProcess* coordinator() { return lead_; }
  // The election reports that it leads the job; after a freeze that may be outdated.
  bool believes_it_leads() const { return candidate_ && candidate_->is_leading(); }
  // The coordinator at the job's endpoint runs in this node's process.
  void set_coordinator(CoordinatorProcess* coordinator) { lead_ = coordinator; }

  // Program
  void on_dialled(ConnectionId connection, bool is_connected, const std::string& why) override;
  void on_accepted(ConnectionId) override {}
  void on_bytes(ConnectionId connection, std::span<const uint8_t> bytes) override;
  void on_ended(ConnectionId connection, Ending how) override;

 private:
  Instant local_now() const { return spec_.clock.local(context_.event_queue.now()); }
  void trace(const std::string& what) const {
    context_.trace.line(context_.event_queue.now(), spec_.label, what);
  }

  // The shell.
  using Call = std::function<void(Instant, agent::Effects&)>;
  void run_core(const Call& call);
  void call_client(const std::function<void(Instant, ReconnectPolicy::Effects&)>& call);
  void when_awake(std::function<void()> event);
  void carry_out(const agent::SendMessage& effect);
  void carry_out(const agent::Disconnect& effect);
  void carry_out(const agent::Reconnect& effect);
  void carry_out(const agent::PrepareRound&);
  void carry_out(const agent::StartWorkers& effect);
  void carry_out(const agent::StopWorkers& effect) { workers_.stop(effect); }
  void carry_out(const agent::ReservePort& effect);
  void carry_out(const agent::SetWorkerLease& effect);
  void carry_out(const agent::FirstFailure&) {}
  void carry_out(const agent::EndSaving& effect) { workers_.end_saving(effect); }
  void carry_out(const agent::ScanSnapshots&);
  void carry_out(const agent::RunNodeCheck&);
  void carry_out(const agent::FetchSnapshot& effect);
  void carry_out(const agent::DropFetch&) { ++fetches_; }
  void carry_out(const agent::ServeSnapshots&) {}
  void carry_out(const agent::FetchReplicas&) {}  // --snapshot-replicas is not simulated
  void carry_out(const agent::KeepReplicas&) {}
  void carry_out(const agent::LogEvent& effect);
  void carry_out(const agent::Finish& effect);
  void carry_out(const agent::Routes& effect);
  void carry_out(const agent::BecomeCoordinator& effect);
  void carry_out(const ReconnectPolicy::Connect&);
  void carry_out(const ReconnectPolicy::ResetConnection&);
  void carry_out(const ReconnectPolicy::Broken&);
  void carry_out(const ReconnectPolicy::Probe&);
  void carry_out(const ReconnectPolicy::Refused& effect);
  void carry_out(const ReconnectPolicy::Trouble& trouble);
  void hang_up(Ending how);
  // By the election (R18).
  void make_candidate();
  void lead(const election::Elected& lead);
  void on_deposed();
  void leave_election(const agent::Finish& finish);
  void take_messages(ConnectionId connection);
  void look_at_message(const control::CoordinatorMessage& message);
  void check_link(const control::CheckLink& check);
  bool is_blank() const { return assigned_.round == RoundNumber(); }
  void judge_move(ConnectionId connection, const control::CoordinatorMessage& message);
  bool must_stay(const control::CoordinatorMessage& message) const;
  void must_leave(ConnectionId connection, const std::string& why);
  void arm_timer();
  void on_timer();

  NodeWorkers::Events worker_events();

  // Snapshots.
  void save_snapshot();
  void keep_snapshot(control::SnapshotName snapshot);
  void save_as_it_goes(Duration each, int64_t nth);
  void fall_back();
  bool is_disk_full() const { return context_.event_queue.now() < disk_is_full_until_; }

  SimContext& context_;
  const NodeSpec spec_;
  Prng prng_;
  ProgramId program_ = 0;
  agent::Agent core_;
  ReconnectPolicy client_;
  std::unique_ptr<CoordinatorProcess> own_lead_;
  CoordinatorProcess* lead_ = nullptr;
  std::unique_ptr<Candidate> candidate_;  // where etcd is the arbiter

  std::deque<agent::Effect> queue_;
  bool is_carrying_out_ = false;
  OneShotTimer alarm_;
  std::optional<ConnectionId> connection_;
  std::optional<ConnectionId> dialling_;
  Endpoint dialled_;
  bool is_closing_ = false;
  bool knows_outcome_ = false;

  bool is_alive_ = true;
  bool was_asked_ = false;  // by a signal, to leave
  bool is_frozen_ = false;
  std::function<void()> after_message_;
  std::deque<std::function<void()>> mailbox_;  // events while the agent was frozen
  NodeWorkers workers_;

  Term term_;
  std::optional<control::RankAssignment> assignment_;  // of the workers started last
  int64_t ports_ = 0;
  RoundName assigned_;   // the newest round that it was assigned
  int64_t fetches_ = 0;  // only the newest counts
  std::string check_result_;
  Instant disk_is_full_until_;
  std::vector<control::SnapshotName> snapshots_;  // on its disk, newest first
  std::optional<agent::Finish> finish_;
};

}  // namespace cpprun::sim

// AgentDaemon::Impl: owns the loop and all parts of the agent, passes events to the core, and
// executes the core's effects. Private. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent.hpp"
#include "agent/daemon/daemon.hpp"
#include "agent/daemon/events/console_reporter.hpp"
#include "agent/daemon/events/event_recorder.hpp"
#include "agent/daemon/faults/fault_injector.hpp"
#include "agent/daemon/loop_poster.hpp"
#include "agent/daemon/services/admin_command_relay.hpp"
#include "agent/daemon/services/admin_socket.hpp"
#include "agent/daemon/services/file_timer_server.hpp"
#include "agent/daemon/services/hang_monitor.hpp"
#include "agent/daemon/services/health_server.hpp"
#include "agent/daemon/services/log_tail_reporter.hpp"
#include "agent/daemon/services/progress_reporter.hpp"
#include "agent/daemon/services/stack_dump_service.hpp"
#include "agent/daemon/services/store_monitor.hpp"
#include "agent/daemon/services/stuck_reporter.hpp"
#include "agent/daemon/snapshots/replica_manager.hpp"
#include "agent/daemon/snapshots/snapshot_manager.hpp"
#include "agent/process/cleanup/reaper.hpp"
#include "agent/process/clock.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/spawn/port_reservation.hpp"
#include "agent/process/streams/log_folder.hpp"
#include "common/log/log.hpp"
#include "common/proof/node_id.hpp"
#include "rendezvous/client/control_client.hpp"

namespace cpprun {

class AgentDaemon::Impl {
 public:
  explicit Impl(AgentConfig given);
  ~Impl();

  Status prepare();
  Incarnation incarnation() const { return node_id_of(key_); }
  void set_start_times(const StartTimes& times) { event_recorder_->set_start_times(times); }
  void may_lead(BecomeCoordinator take_over) { take_over_ = std::move(take_over); }
  void may_host(HostJob host_job) { host_job_ = std::move(host_job); }
  int run(const Endpoint& coordinator, bool is_own);
  Result<uint16_t> keep_port();
  ElectionCallbacks election_callbacks();
  int run_elected(Arbiter arbiter);
  std::optional<Duration> may_stay() const;

 private:
  // Executes the effects of one call of the core, and those of the calls that follow from them.
  template <class Call>
  void run_core(Call call) {
    agent::Effects effects;
    call(effects);
    for (agent::Effect& effect : effects) queue_.push_back(std::move(effect));
    if (is_carrying_out_) return;
    is_carrying_out_ = true;
    while (!queue_.empty()) {
      agent::Effect effect = std::move(queue_.front());
      queue_.pop_front();
      std::visit([this](const auto& e) { this->carry_out(e); }, effect);
    }
    is_carrying_out_ = false;
    arm_timer();
    if (arbiter_) notify_arbiter();
  }

  void carry_out(const agent::SendMessage& effect) {
    if (connection_) connection_->send(effect.message);
  }
  void carry_out(const agent::Disconnect& effect);
  void carry_out(const agent::Reconnect& e) { connection_->reconnect(e.is_elsewhere); }
  void carry_out(const agent::Routes& effect);
  void carry_out(const agent::BecomeCoordinator& effect);
  void carry_out(const agent::StartWorkers& effect);
  void carry_out(const agent::StopWorkers& effect);
  void carry_out(const agent::EndSaving& effect) { host_->end_saving(effect.signal); }
  void carry_out(const agent::ReservePort&);
  void carry_out(const agent::SetWorkerLease& effect) {
    reaper_->set_deadline(effect.deadline);
    worker_lease_deadline_ = effect.deadline;
  }
  void carry_out(const agent::FirstFailure& effect) {
    event_recorder_->first_failure(reporter_->first_failure(effect));
  }
  void carry_out(const agent::LogEvent& effect);
  void carry_out(const agent::Finish& effect);
  void carry_out(const agent::ScanSnapshots&) { snapshots_->scan(); }
  void carry_out(const agent::FetchSnapshot& e) { snapshots_->fetch(e.resume, e.secret); }
  void carry_out(const agent::DropFetch&) {
    snapshots_->drop_fetch();
    if (replicas_) replicas_->cancel_fetch();
  }
  void carry_out(const agent::FetchReplicas& effect) {
    replicas_->fetch(effect.at, effect.assignment);
  }
  void carry_out(const agent::KeepReplicas& effect) {
    replicas_->replicate(effect.of, effect.secret);
  }
  void carry_out(const agent::ServeSnapshots& effect) { snapshots_->allow(effect.secret); }

  Status start_workers(const control::RankAssignment& assignment);
  void begin_files(const Status& made);
  void start_host();
  void on_milestone(int local_rank, WorkerMilestone milestone);
  void on_stuck(const std::vector<std::string>& lines);
  void warn_unended(const std::vector<StuckProcess>& left) const;
  void keep_control_port();
  void open_faults();
  void watch_for_hangs();
  void watch_workers(const control::RankAssignment& assignment);
  void unwatch_workers();
  void answer_probes();
  void report_debugged_worker(const std::vector<WorkerSpec>& specs, int64_t world_size) const;
  void open_replicas();
  void open_snapshots();
  void serve_snapshots(const std::vector<std::string>& addresses);
  void connect();
  std::optional<Endpoint> host_if_free(const std::vector<std::string>& addresses);
  void on_led_from(const Endpoint& place);
  void notify_arbiter();
  void catch_signals();
  void wait_for_signal();
  void watch_reaper();
  void arm_timer();
  void on_timer();
  void open_admin_socket();
  static std::string operator_token();
  bool is_connected() const { return connection_ && !connection_->peer_address().empty(); }
  void on_message(const control::CoordinatorMessage& message);
  admin::NodeView node_view() const;
  void open_dashboard();
  std::string on_signal_query(const admin::AdminQuery& query);
  std::string on_leave_query(const admin::AdminQuery& query);
  void close(bool is_reset);
  void end_loop();
  void close_folder(bool is_well);

  const AgentConfig config_;
  const std::string host_name_;
  const std::string token_;  // in the environment of every process of this agent
  const std::string key_;    // secret; proves to the coordinator that we are this node
  Endpoint coordinator_;
  HostJob host_job_;                               // empty: this agent never hosts its job
  BecomeCoordinator take_over_;                    // empty: this agent is never a standby
  std::optional<PortReservation> control_port_;    // for a coordinator in this process
  Arbiter arbiter_;                                // empty: the coordinator is not elected
  std::optional<std::pair<bool, bool>> reported_;  // the last report to the arbiter
  Instant reported_at_;
  std::string no_election_;  // why the leader is unknown; "" once there was a leader

  boost::asio::io_context loop_;
  boost::asio::steady_timer timer_;
  boost::asio::signal_set signals_;
  boost::asio::posix::stream_descriptor reaper_fd_;
  Instant armed_for_ = Instant::never();
  Instant worker_lease_deadline_ = Instant::never();  // workers may run until then

  std::unique_ptr<Reaper> reaper_;
  LogFolder folder_;
  bool has_no_files_ = false;  // of the newest attempt
  std::optional<ConsoleReporter> reporter_;
  std::optional<EventRecorder> event_recorder_;
  std::optional<PortReservation> port_;
  std::unique_ptr<ProcessHost> host_;
  std::unique_ptr<HangMonitor> hangs_;
  StoreMonitor store_monitor_{loop_, config_.rendezvous.wait_reminder_interval,
                              [this](const std::string& text) {
                                log::warning(text);
                                event_recorder_->warning(text);
                              }};
  std::unique_ptr<FileTimerServer> timers_;     // with TORCHELASTIC_ENABLE_FILE_TIMER only
  HealthServer health_{loop_};                  // opened by TORCHELASTIC_HEALTH_CHECK_PORT only
  bool is_own_ = false;                         // the coordinator is in this process
  Endpoint coordinator_peer_;                   // the coordinator's current or last endpoint
  std::unique_ptr<ControlClient> connection_;   // nullptr until the first snapshot scan has ended
  std::unique_ptr<SnapshotManager> snapshots_;  // with --snapshot-dir only
  std::unique_ptr<ReplicaManager> replicas_;    // with --snapshot-replicas=1 only
  std::unique_ptr<FaultInjector> faults_;       // with a fault plan only
  std::unique_ptr<ProgressReporter> progress_;  // created with the connection
  std::unique_ptr<LogTailReporter> tails_;      // created with the connection
  std::optional<agent::Agent> core_;
  AdminSocket admin_{loop_};
  AdminCommandRelay admin_commands_{[this](const control::AgentMessage& message) {
                                      if (!is_connected()) return false;
                                      connection_->send(message);
                                      return true;
                                    },
                                    config_.rendezvous.run_id, operator_token()};
  StackDumpService stacks_{loop_, [this] { return host_->look(); }};
  StuckReporter stuck_{loop_, [this](const std::vector<std::string>& lines) { on_stuck(lines); }};
  const Instant begun_at_ = boot_now();
  const std::shared_ptr<LoopPoster> poster_ = std::make_shared<LoopPoster>(loop_);

  std::deque<agent::Effect> queue_;
  bool is_carrying_out_ = false;
  bool is_closing_ = false;
  std::optional<agent::Finish> finish_;
};

}  // namespace cpprun

#include "agent/daemon/agent_daemon.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <csignal>
#include <utility>

#include "agent/core/agent.hpp"
#include "agent/core/join_texts.hpp"
#include "agent/core/worker_environment.hpp"
#include "agent/daemon/events/console_reporter.hpp"
#include "agent/daemon/events/event_recorder.hpp"
#include "agent/daemon/events/progress_console.hpp"
#include "agent/daemon/faults/fault_injector.hpp"
#include "agent/daemon/join_options.hpp"
#include "agent/daemon/preload.hpp"
#include "agent/daemon/reserved_ports.hpp"
#include "agent/daemon/round_files.hpp"
#include "agent/daemon/round_starter.hpp"
#include "agent/daemon/scheduler_exit_code.hpp"
#include "agent/daemon/services/admin_service.hpp"
#include "agent/daemon/services/batch_host_watch.hpp"
#include "agent/daemon/services/election_reporter.hpp"
#include "agent/daemon/services/exclusion_hook.hpp"
#include "agent/daemon/services/failure_notice.hpp"
#include "agent/daemon/services/file_timer_server.hpp"
#include "agent/daemon/services/goodput_monitor.hpp"
#include "agent/daemon/services/hang_monitor.hpp"
#include "agent/daemon/services/health_server.hpp"
#include "agent/daemon/services/job_control.hpp"
#include "agent/daemon/services/link_checker.hpp"
#include "agent/daemon/services/node_checker.hpp"
#include "agent/daemon/services/reaper_watch.hpp"
#include "agent/daemon/services/signal_catcher.hpp"
#include "agent/daemon/services/state_keeper.hpp"
#include "agent/daemon/services/store_monitor.hpp"
#include "agent/daemon/services/stuck_reporter.hpp"
#include "agent/daemon/services/worker_reports.hpp"
#include "agent/daemon/snapshots/replica_manager.hpp"
#include "agent/daemon/snapshots/snapshot_manager.hpp"
#include "agent/daemon/stream_routes.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/streams/log_folder.hpp"
#include "agent/process/streams/stream_fds.hpp"
#include "common/check.hpp"
#include "common/exit_code.hpp"
#include "common/log/log.hpp"
#include "common/loop/effect_runner.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/machine/identity.hpp"
#include "common/proof/node_id.hpp"
#include "common/text.hpp"
#include "common/thread/io_thread.hpp"
#include "common/thread/loop_mark.hpp"
#include "rendezvous/client/control_client.hpp"

namespace cpprun {

namespace asio = boost::asio;

class AgentDaemon::Impl final : public AgentDaemon {
 public:
  explicit Impl(AgentConfig given);
  ~Impl() override;

  Status prepare();
  Incarnation incarnation() const override { return node_id_of(key_); }
  void set_start_times(const StartTimes& times) override {
    event_recorder_->set_start_times(times);
  }
  void may_lead(BecomeCoordinator take_over) override { take_over_ = std::move(take_over); }
  void may_host(HostJob host_job) override { host_job_ = std::move(host_job); }
  void may_connect_in_process(ConnectInProcess connect) override {
    connect_in_process_ = std::move(connect);
  }
  int run(const Endpoint& coordinator, bool is_own) override;
  Result<uint16_t> keep_port() override { return ports_.reserve_control(); }
  ElectionCallbacks election_callbacks() override;
  int run_elected(Arbiter arbiter) override {
    election_.open(std::move(arbiter));
    return run(Endpoint{}, false);
  }
  std::vector<std::string> excluded_hosts() const override {
    return core_->host_records().excluded();
  }
  std::optional<Duration> may_stay() const override;

 private:
  void carry_out(const agent::SendMessage& effect);
  void carry_out(const agent::Disconnect& effect) { close(effect.is_reset); }
  void carry_out(const agent::Reconnect& e) { connection_->reconnect(e.is_elsewhere); }
  void carry_out(const agent::Routes& effect);
  void carry_out(const agent::BecomeCoordinator& effect);
  void carry_out(const agent::PrepareRound& effect);
  void carry_out(const agent::StartWorkers& effect);
  void carry_out(const agent::StopWorkers& effect);
  void carry_out(const agent::EndSaving& effect) { host_->end_saving(effect.signal); }
  void carry_out(const agent::ReservePort&);
  void carry_out(const agent::SetWorkerLease& effect) {
    if (reaper_.set_deadline(effect.deadline)) runner_->run(&agent::Agent::on_workers_killed);
  }
  void carry_out(const agent::FirstFailure& effect) {
    event_recorder_->first_failure(reporter_->first_failure(effect));
  }
  void carry_out(const agent::LogEvent& effect) {
    if (!progress_console_.has_shown(effect)) reporter_->show(effect);
    if (effect.level == agent::LogEvent::Level::Warning) event_recorder_->warning(effect.text);
  }
  void carry_out(const agent::Finish& effect);
  void carry_out(const agent::ScanSnapshots&) { snapshots_->scan(); }
  void carry_out(const agent::FetchSnapshot& e) { snapshots_->fetch(e.resume, e.secret); }
  void carry_out(const agent::DropFetch&) {
    snapshots_->drop_fetch();
    if (replicas_) replicas_->cancel_fetch();
  }
  void carry_out(const agent::FetchReplicas& e) { replicas_->fetch(e.at, e.assignment); }
  void carry_out(const agent::KeepReplicas& e) { replicas_->replicate(e.of, e.secret); }
  void carry_out(const agent::RunNodeCheck&) { checker_.run(); }
  void carry_out(const agent::ServeSnapshots& effect) { snapshots_->allow(effect.secret); }

  void on_started();
  void on_start_failed(const Error& error) {
    starter_->on_ended();
    event_recorder_->start_failed();
    runner_->run(&agent::Agent::on_start_failed, error);
  }
  void start_host();
  void on_milestone(int local_rank, WorkerMilestone milestone) {
    const LocalRank worker(local_rank);
    event_recorder_->on_milestone(worker, milestone, host_->step_of(local_rank).value_or(-1));
    if (milestone == WorkerMilestone::Stepped) on_stepped();
    if (milestone == WorkerMilestone::EndedBeforeStep) core_->on_no_step(worker);
  }
  void on_stepped() {
    goodput_->on_stepped();
    core_->on_step();
    if (reports_) reports_->on_stepped();
  }
  void warn(const std::string& text) {  // in the log and as an event
    log::warning(text);
    event_recorder_->warning(text);
  }
  void on_stuck(const std::vector<std::string>& lines);
  // Reserves the port to lead the job from. Without one this agent cannot be a standby.
  void keep_control_port() {
    if (!take_over_) return;
    const Result<uint16_t> port = ports_.reserve_control();
    if (!port) return log::info("no port to lead the job from: " + port.error().text);
    core_->on_control_port(*port);
  }
  void open_faults() {
    if (!config_.faults.plan) return;
    FaultInjector::Callbacks callbacks;
    callbacks.request_permit = [this](const control::FaultPermitRequest& request) {
      if (connection_) connection_->send(request);
    };
    callbacks.pid_of = [this](int local_rank) { return host_->pid_of(local_rank); };
    callbacks.step_of = [this](int local_rank) { return host_->step_of(local_rank); };
    callbacks.drop_connection = [this] {
      if (connection_) connection_->reconnect();
    };
    faults_ = std::make_unique<FaultInjector>(loop_, config_.faults, std::move(callbacks));
  }
  void on_round_files();
  void watch_for_hangs();
  void watch_workers(const control::RankAssignment& assignment) {
    hangs_->begin_round(folder_.hang_file(assignment.round.value));
    if (assignment.is_agent_store || assignment.group_rank != 0) return;
    store_monitor_.begin_round(static_cast<uint16_t>(assignment.master_port));
  }
  void unwatch_workers() {
    hangs_->end_round();
    store_monitor_.end_round();
  }
  void end_round(bool are_some_held) {
    if (std::exchange(holds_survivors_, are_some_held)) return;  // it had ended for them
    starter_->on_ended();
    event_recorder_->workers_gone(are_some_held);
    goodput_->on_round_over();
    reports_->on_round_ended();
    if (faults_) faults_->on_stopped();
    unwatch_workers();
    if (timers_) timers_->end_round();
  }
  void open_replicas();
  void open_snapshots();
  void serve_peers(const std::vector<std::string>& addresses);
  void connect();
  std::optional<Endpoint> host_if_free(const std::vector<std::string>& addresses);
  void on_led_from(const Endpoint& place);
  void on_signal(int number, int meant) {
    host_->hurry();
    event_recorder_->on_signal(number);
    progress_console_.on_signal();
    runner_->run(&agent::Agent::on_signal, meant);
  }
  bool is_connected() const { return connection_ && !connection_->peer_address().empty(); }
  void on_message(const control::CoordinatorMessage& message);
  void open_admin_service();
  void open_reports();
  void close(bool is_reset);
  void end_loop() {
    CPPRUN_CHECK(finish_.has_value());
    if (finish_->how == agent::Finish::How::Unusable) return loop_.stop();
    host_->await_output([this] { loop_.stop(); });
  }
  // A temporary folder is kept after a failure, to look for its reason, and if it has output that
  // was shown nowhere.
  void close_folder(bool is_well) {
    // NFS renames a removed file that is still open, and the folder would not be empty.
    if (event_recorder_) event_recorder_->close();
    // A command of the user may still run, or may have left processes; no round waits for these.
    const bool is_needed = !config_.node_check.command.empty() || !config_.exclude_hook.empty();
    is_needed ? reaper_.leave() : reaper_.dismiss();  // that ends while the folder is removed
    if (finish_ && at_end_)
      at_end_({folder_.run_folder(), event_recorder_->speaks_for_job(is_own_), is_well});
    const std::string note = folder_.leave(is_well);
    if (note.empty()) return;
    reporter_ && reporter_->has_shown_logs() ? log::info(note) : log::note(note);
  }

  const AgentConfig config_;
  const std::string node_name_;
  const std::string token_;  // in the environment of every process of this agent
  const std::string key_;    // secret; proves to the coordinator that we are this node
  Endpoint coordinator_;
  HostJob host_job_;                     // empty: this agent never hosts its job
  ConnectInProcess connect_in_process_;  // may be empty
  BecomeCoordinator take_over_;          // empty: this agent is never a standby
  ElectionReporter election_{config_.rendezvous.conf.heartbeat};
  boost::asio::io_context loop_;
  SignalCatcher signals_{loop_, [this](int number, int meant) { on_signal(number, meant); }};
  JobControl job_control_{loop_, [this](const auto& wait) { host_->suspend_during(wait); }};

  const std::shared_ptr<IoThread> io_ = std::make_shared<IoThread>();  // shared with the host
  ReaperWatch reaper_{loop_};
  LogFolder folder_;
  std::optional<RoundFiles> files_;
  std::optional<ConsoleReporter> reporter_;
  std::optional<EventRecorder> event_recorder_;
  ReservedPorts ports_{config_.rendezvous};
  std::unique_ptr<Preloader> preloader_;  // with --preload only
  std::unique_ptr<ProcessHost> host_;
  std::optional<RoundStarter> starter_;
  std::unique_ptr<HangMonitor> hangs_;
  std::unique_ptr<GoodputMonitor> goodput_;
  StoreMonitor store_monitor_{loop_, config_.rendezvous.wait_reminder_interval,
                              [this](const std::string& text) { warn(text); }};
  std::unique_ptr<FileTimerServer> timers_;     // with TORCHELASTIC_ENABLE_FILE_TIMER only
  HealthServer health_{loop_};                  // opened by TORCHELASTIC_HEALTH_CHECK_PORT only
  bool is_own_ = false;                         // the coordinator is in this process
  bool others_continue_ = false;                // this node drains, and the job has enough others
  Endpoint coordinator_peer_;                   // the coordinator's current or last endpoint
  std::unique_ptr<ControlClient> connection_;   // nullptr until the first snapshot scan has ended
  std::unique_ptr<SnapshotManager> snapshots_;  // with --snapshot-dir only
  std::unique_ptr<ReplicaManager> replicas_;    // with --snapshot-replicas=1 only
  std::unique_ptr<FaultInjector> faults_;       // with a fault plan only
  std::unique_ptr<WorkerReports> reports_;      // created with the connection
  std::optional<agent::Agent> core_;
  // Handles the expired timer before messages that have arrived: after a suspend or freeze the
  // worker lease may have ended, and then the workers must be killed first (R11).
  std::optional<EffectRunner<agent::Agent, agent::Effects>> runner_;
  std::unique_ptr<AdminService> admin_;
  StateKeeper state_keeper_{config_, *io_, is_own_};
  ExclusionHook exclusion_hook_{config_, agent::chain_token(config_, token_), is_own_};
  BatchHostWatch batch_host_{loop_, config_, [this](const std::string& text) { warn(text); }};
  NodeChecker checker_{loop_, config_, token_, [this](const std::string& why, Duration took) {
                         event_recorder_->node_checked(why, took);
                         runner_->run(&agent::Agent::on_node_checked, why);
                       }};
  LinkChecker link_checker_{loop_, config_, [this](const auto& r) { connection_->send(r); }};
  StuckReporter stuck_{loop_, [this](const std::vector<std::string>& lines) { on_stuck(lines); }};
  ProgressConsole progress_console_{loop_, config_, own_host_name()};
  const Instant begun_at_ = boot_now();
  const std::shared_ptr<LoopPoster> poster_ = std::make_shared<LoopPoster>(loop_);
  bool holds_survivors_ = false;  // no round runs here, but workers of the last one live
  bool is_closing_ = false;
  std::optional<agent::Finish> finish_;
};

Result<std::unique_ptr<AgentDaemon>> AgentDaemon::make(AgentConfig config) {
  fill_standard_streams();  // before the loop opens its descriptors
  // Workers may run in another working directory.
  config.snapshot_dir = absolute_path(config.snapshot_dir);
  auto made = std::make_unique<Impl>(std::move(config));
  if (Status ok = made->prepare(); !ok) return ok.error();
  return std::unique_ptr<AgentDaemon>(std::move(made));
}

AgentDaemon::Impl::Impl(AgentConfig given)
    : config_(std::move(given)),
      node_name_(node_name(config_.cluster)),
      token_(random_hex()),
      key_(random_hex()),
      loop_(1) {}

AgentDaemon::Impl::~Impl() {
  poster_->close();
  if (!finish_) close_folder(true);  // no worker was ever started
}

Status AgentDaemon::Impl::prepare() {
  for (int number : {SIGPIPE, SIGXFSZ}) {  // so that write() reports these cases as errors
    std::signal(number, SIG_IGN);
  }
  if (Status ok = ports_.reserve_fixed_master(); !ok) return ok.error();
  Result<LogFolder> folder =
      LogFolder::make(config_.logs.dir, config_.rendezvous.run_id, config_.temporary_dir);
  if (!folder) return folder.error();
  folder_ = std::move(*folder);
  // Forks, so it must come before the first thread.
  if (Status ok = reaper_.start(token_); !ok) return ok.error();
  // Not with its first task: a system that starts no thread is then reported once.
  if (Status ok = io_->start(); !ok) return ok.error();
  log::open();
  start_host();
  watch_for_hangs();
  reporter_.emplace(config_, node_name_, *io_);
  event_recorder_.emplace(loop_, config_, node_name_, folder_.run_folder(), *io_, is_own_);
  GoodputMonitor::Callbacks goodput;
  goodput.live = [this] { return host_->live(); };
  goodput.sends = [this] { return is_connected() && event_recorder_->reports_time(); };
  goodput.send = [this](const control::TimeSpent& spent) { connection_->send(spent); };
  goodput.keep = [this] { state_keeper_.save(); };
  goodput_ = std::make_unique<GoodputMonitor>(loop_, event_recorder_->goodput(), goodput);
  return {};
}

void AgentDaemon::Impl::start_host() {
  ProcessHost::Events events;
  events.on_start = [this](LocalRank worker, Rank rank, int pid, std::optional<SpawnReason> why) {
    event_recorder_->worker_started(worker, rank, pid, why);
  };
  events.on_started = [this] { on_started(); };
  events.on_start_failed = [this](const Error& error) { on_start_failed(error); };
  events.on_slow_start = [this](LocalRank local_rank, const std::string& program) {
    warn(slow_start_text(local_rank, program));
  };
  events.on_ready = [this](LocalRank local_rank) { event_recorder_->worker_ready(local_rank); };
  events.on_milestone = [this](int local_rank, WorkerMilestone milestone) {
    on_milestone(local_rank, milestone);
  };
  events.on_last_beat = [this](const Heartbeat& last) { goodput_->on_beat(last); };
  events.on_failure = [this](const WorkerExit& end) {
    runner_->run(&agent::Agent::on_worker_failed, end);
  };
  events.on_end = [this](const WorkerExit& end) {
    event_recorder_->worker_exited(end);
    runner_->run(&agent::Agent::on_worker_exit, end);
  };
  events.on_can_regroup = [this](int) { core_->on_can_regroup(); };
  events.on_kept = [this](LocalRank worker, Rank rank, int pid, int64_t step) {
    event_recorder_->worker_kept(worker, rank, pid, step);
  };
  events.on_all_workers_gone = [this] {
    end_round(false);
    runner_->run(&agent::Agent::on_all_workers_gone);
  };
  events.on_workers_released = [this] {
    end_round(true);
    runner_->run(&agent::Agent::on_workers_released);
  };
  events.on_stuck = [this](std::vector<StuckProcess> all) { stuck_.inspect(std::move(all)); };
  events.on_stdout_closed = &ConsoleReporter::stdout_closed;
  events.on_note = [](const std::string& text) { log::info(text); };
  events.holds_worker_lease = [this] { return reaper_.holds_worker_lease(boot_now()); };
  events.on_snapshot = [this](int local_rank, int64_t step, const std::string& path) {
    event_recorder_->snapshot_complete(LocalRank(local_rank), step, path);
    if (snapshots_) snapshots_->scan();
  };
  events.on_fell_back = [this](int, int64_t step) {
    runner_->run([&](auto& core, Instant, auto& effects) { core.on_fell_back(step, effects); });
  };
  if (config_.faults.plan) {
    events.on_fault_permit_request = [this](int rank, const channel::FaultPermitRequest& query,
                                            auto answer) {
      faults_->on_permit_requested(rank, query, std::move(answer));
    };
    events.on_began = [this](int, const channel::Began& began) { faults_->on_began(began); };
  }
  if (config_.hangs.mode != HangConfig::Mode::Off) {
    events.on_stopped = [this] { hangs_->on_stopped(); };
  }
  ProcessHost::Options options;
  options.token = token_;
  options.channel_name = "cpprun/agent/" + random_hex();
  options.io = io_;
  options.worker_fork = [this](size_t n) { return worker_fork(config_, preloader_.get(), n); };
  open_replicas();
  if (replicas_) options.arenas = replicas_->shard_arenas().own;
  host_ = std::make_unique<ProcessHost>(loop_, options, events);
  preloader_ = make_preloader(loop_, config_, token_);  // a new child, which the host must know
  files_.emplace(loop_, *io_, config_, folder_, [this] { on_round_files(); });
  starter_.emplace(config_, token_, *files_, *host_);
}

// The workers wait for the imports here, while the agent keeps its lease.
void AgentDaemon::Impl::on_round_files() {
  const auto prepared = [this] {
    if (preloader_) event_recorder_->preloaded();
    runner_->run(&agent::Agent::on_prepared);
  };
  preloader_ ? preloader_->prepare(prepared) : prepared();
}

void AgentDaemon::Impl::watch_for_hangs() {
  HangMonitor::Events events;
  events.live = [this] { return host_->look(); };
  events.on_hang = [this](const WorkerExit& hung, Instant since) {
    event_recorder_->hangs_since(since);
    runner_->run(&agent::Agent::on_hang, hung);
  };
  events.on_warning = [this](const std::string& text) { warn(text); };
  hangs_ = std::make_unique<HangMonitor>(loop_, config_.hangs, std::move(events));
  if (config_.timer_file.empty()) return;
  FileTimerServer::Events timer_events{[this] { return host_->pids(); },
                                       [](const std::string& text) { log::warning(text); }};
  timers_ =
      std::make_unique<FileTimerServer>(loop_, *io_, config_.timer_file, std::move(timer_events));
}

int AgentDaemon::Impl::run(const Endpoint& coordinator, bool is_own) {
  coordinator_ = coordinator;
  if (config_.workers.set_omp_num_threads) reporter_->omp_banner();
  event_recorder_->run_started();
  progress_console_.start(coordinator, folder_.run_folder());
  agent::AgentOptions options = join_options(config_, node_name_, key_);
  options.host_records = state_keeper_.load(event_recorder_->goodput(), *hangs_);
  exclusion_hook_.begin(options.host_records);
  core_.emplace(std::move(options));
  EffectRunnerHooks hooks;
  if (election_.is_open()) {
    hooks.after_effects = [this] {
      const Instant now = boot_now();
      election_.report(now, core_->is_led(now), core_->would_lead());
    };
  }
  runner_.emplace(
      loop_, *core_, [this](const auto& effect) { carry_out(effect); }, hooks);
  keep_control_port();
  signals_.start(config_.signals, config_.cluster.stop_signals);
  if (std::ranges::count(config_.signals, SIGTSTP) == 0) job_control_.start();
  reaper_.watch();
  is_own_ = is_own;
  open_admin_service();
  if (config_.health_port) health_.try_open(*config_.health_port);
  open_faults();
  open_snapshots();
  if (!snapshots_) connect();
  runner_->run(&agent::Agent::start);
  {
    const LoopMark mark;
    loop_.run();
  }
  CPPRUN_CHECK(finish_.has_value());
  using How = agent::Finish::How;
  // An agent that the coordinator refused may have workers.
  const std::vector<StuckProcess> left = host_->kill_everything();
  if (finish_->how != How::Unusable) reporter_->unended(left);
  preloader_.reset();
  const std::string logs = finish_->is_well() ? "" : folder_.kept_after_failure();
  const int own_code = reporter_->finish(*finish_, logs, *event_recorder_);
  const int code = code_for_scheduler(config_.cluster, *finish_, others_continue_, own_code);
  event_recorder_->finished(*finish_, code, others_continue_);
  if (sends_for_job(is_own_, core_->assignment()))
    send_failure_notice(config_.notify_url, event_recorder_->summary());
  state_keeper_.finish(finish_->how == How::Success);
  close_folder(finish_->is_well() && !hides_output(config_.logs));
  return faults_ ? faults_->finish(code) : code;
}

std::optional<Duration> AgentDaemon::Impl::may_stay() const {
  if (!finish_ || finish_->signal == 0) return std::nullopt;
  return std::max(Duration{}, finish_->stays_until - boot_now());
}

void AgentDaemon::Impl::open_admin_service() {
  AdminService::Callbacks callbacks;
  callbacks.goodput = [this] { return goodput_->sample(), event_recorder_->goodput_event(); };
  callbacks.coordinator = [this] {
    return is_connected() ? std::optional(coordinator_peer_) : std::nullopt;
  };
  callbacks.hosts_coordinator = [this] { return is_own_; };
  callbacks.send = [this](const control::AgentMessage& message) {
    if (!is_connected()) return false;
    connection_->send(message);
    return true;
  };
  callbacks.leave = [this](int signal) {
    host_->hurry();
    runner_->run(&agent::Agent::on_signal, signal);
  };
  const AdminService::Node node{config_, node_name_, folder_, *core_, *host_, begun_at_};
  admin_ = std::make_unique<AdminService>(loop_, node, std::move(callbacks));
  if (Status ok = admin_->open(); !ok) log::info(ok.error().text);
}

void AgentDaemon::Impl::open_reports() {
  WorkerReports::Callbacks callbacks;
  callbacks.heartbeats = [this] { return host_->heartbeats(config_.workers.nproc); };
  callbacks.round = [this] { return core_->assignment().round; };
  callbacks.files = [this](int local_rank) {
    StreamRoutes streams = route_streams(config_.logs, folder_, local_rank, "");
    return LogTailReporter::Files{std::move(streams.out.file), std::move(streams.err.file)};
  };
  callbacks.live = [this] { return host_->live(); };
  callbacks.send = [this](const control::AgentMessage& report) { connection_->send(report); };
  callbacks.workers = config_.workers.nproc;
  reports_ = std::make_unique<WorkerReports>(loop_, callbacks);
}

void AgentDaemon::Impl::open_replicas() {
  if (!config_.keeps_replicas) return;
  ReplicaManager::Events events;
  events.on_fetch_ended = [this] { runner_->run(&agent::Agent::on_replicas_fetched); };
  events.on_note = [](bool is_rare, const std::string& text) {
    is_rare ? log::info(text) : log::debug(text);
  };
  events.on_warning = [this](const std::string& text) { warn(text); };
  const auto workers = static_cast<size_t>(config_.workers.nproc);
  replicas_ = std::make_unique<ReplicaManager>(loop_, workers, config_.rendezvous.job_tls,
                                               std::move(events));
}

void AgentDaemon::Impl::open_snapshots() {
  if (config_.snapshot_dir.empty()) return;
  SnapshotManager::Events events;
  events.on_snapshots = [this](std::vector<control::SnapshotName> found) {
    if (!connection_ && !finish_) connect();
    runner_->run(&agent::Agent::on_snapshots, std::move(found));
  };
  events.on_fetched = [this] { runner_->run(&agent::Agent::on_fetched); };
  events.on_fetch_failed = [this](const Error& error, bool is_damaged) {
    runner_->run(&agent::Agent::on_fetch_failed, error, is_damaged);
  };
  events.on_warning = [](const std::string& text) { log::warning(text); };
  snapshots_ = std::make_unique<SnapshotManager>(
      loop_, config_.snapshot_dir, std::move(events),
      replicas_ ? replicas_->shard_arenas() : ShardArenas{}, config_.rendezvous.job_tls);
}

// Listens on the address that the coordinator sees; on all if others reach this node elsewhere.
void AgentDaemon::Impl::serve_peers(const std::vector<std::string>& addresses) {
  const RendezvousConfig& rendezvous = config_.rendezvous;
  if (rendezvous.max_nodes == 1 || addresses.empty()) return;
  const bool is_known_by_it =
      rendezvous.local_addr.empty() &&
      (!is_loopback_host(addresses.front()) || is_loopback_host(rendezvous.endpoint.host));
  const std::string address = is_known_by_it ? addresses.front() : "";
  if (snapshots_) core_->on_serving(snapshots_->serve(address));
  core_->on_serving_links(link_checker_.serve(address), link_checker_.secret());
}

void AgentDaemon::Impl::connect() {
  open_reports();
  ControlClient::Events events;
  events.on_connected = [this](std::vector<std::string> addresses, const Endpoint& peer) {
    serve_peers(addresses);
    coordinator_peer_ = peer;
    runner_->run(&agent::Agent::on_connected, addresses, peer);
    if (faults_) faults_->on_connected();
  };
  events.on_message = [this](const control::CoordinatorMessage& message) { on_message(message); };
  events.on_disconnected = [this] {
    reports_->on_disconnected();
    if (faults_) faults_->on_disconnected();
    admin_->on_disconnected();
    batch_host_.on_disconnected();
    runner_->run(&agent::Agent::on_disconnected);
  };
  events.on_refused = [this](const std::vector<Endpoint>& places) {
    runner_->run(&agent::Agent::on_refused, places);
  };
  events.on_trouble = [](const std::string& text) { log::warning(text); };
  events.connect_in_process = connect_in_process_;
  events.on_found = [this](const auto& addresses) { return host_if_free(addresses); };
  ControlClient::Options options{is_own_, config_.rendezvous.wait_reminder_interval};
  options.is_led_by_election = election_.is_open();
  options.tls = config_.rendezvous.job_tls;
  if (!is_own_) options.further_ports = config_.rendezvous.further_ports;
  connection_ = std::make_unique<ControlClient>(loop_, coordinator_, options, events);
  if (election_.is_open() && coordinator_.port != 0)
    connection_->set_routes({coordinator_}, true, false);
}

// Asked before each attempt: a name becomes resolvable, or what listened at the endpoint ends.
std::optional<Endpoint> AgentDaemon::Impl::host_if_free(const std::vector<std::string>& addresses) {
  if (is_own_ || !host_job_ || finish_ || !core_->may_host(boot_now())) return std::nullopt;
  std::optional<Endpoint> own = host_job_(addresses);
  if (own) is_own_ = true;
  return own;
}

void AgentDaemon::Impl::on_message(const control::CoordinatorMessage& message) {
  admin_->on_message(message);
  const auto pass_on = [this](const control::CoordinatorMessage& m) {
    event_recorder_->on_message(m);
    progress_console_.on_message(m);
    core_->on_savers(host_->can_save());
    runner_->run(&agent::Agent::on_message, m);
  };
  // Posted, so that the reply to the admin command leaves first: the core may end the loop at once.
  if (const auto* request = std::get_if<control::ShutdownRequest>(&message)) {
    if (request->others_continue) others_continue_ = true;
    host_->hurry();
    return asio::post(loop_, [pass_on, message] { pass_on(message); });
  }
  reports_->before(message, [pass_on, message] { pass_on(message); });
  if (faults_) faults_->on_message(message);
  state_keeper_.on_message(message);
  link_checker_.on_message(message);
  exclusion_hook_.on_message(message);
  reports_->on_message(message);
}

void AgentDaemon::Impl::carry_out(const agent::SendMessage& effect) {
  if (!connection_) return;
  const auto* started = std::get_if<control::Started>(&effect.message);
  if (started == nullptr) return connection_->send(effect.message);
  connection_->send(control::Started{started->round, worker_starts(*host_, preloader_.get())});
}

void AgentDaemon::Impl::close(bool is_reset) {
  if (std::exchange(is_closing_, true)) return;
  if (!connection_) return asio::post(loop_, [this] { end_loop(); });
  connection_->close(is_reset, [this] { end_loop(); });
}

// After a failure the worker lease expires, and the join timeout ends the run.
void AgentDaemon::Impl::carry_out(const agent::BecomeCoordinator& effect) {
  Result<Endpoint> own = take_over_(effect.term, effect.place, effect.job_key);
  if (!own) return log::error("this node can't lead the job: " + own.error().text);
  is_own_ = true;
  connection_->set_routes({*own}, true, true);
}

// `is_sure`: the leader is known to be there, even if a coordinator runs in this process.
void AgentDaemon::Impl::carry_out(const agent::Routes& effect) {
  if (effect.is_sure) is_own_ = false;
  if (connection_) connection_->set_routes(effect.places, effect.is_sure, false);
}

void AgentDaemon::Impl::carry_out(const agent::PrepareRound& effect) {
  event_recorder_->starting();
  const auto prepare = [this, effect] {
    files_->prepare(static_cast<int>(effect.attempt), effect.round.value);
  };
  timers_ ? timers_->prepare(prepare) : prepare();
}

void AgentDaemon::Impl::carry_out(const agent::StartWorkers& effect) {
  const control::RankAssignment& assignment = effect.assignment;
  const int64_t port = assignment.store_port != 0 ? assignment.store_port : coordinator_.port;
  // The connection may have broken since the assignment came.
  const Endpoint store{coordinator_peer_.host, static_cast<uint16_t>(port)};
  event_recorder_->spawning();
  reports_->on_workers_start(assignment);
  holds_survivors_ = false;
  if (Status ok = starter_->start(assignment, store, timers_.get()); !ok) {
    on_start_failed(ok.error());
  }
}

void AgentDaemon::Impl::on_started() {
  const control::RankAssignment& assignment = core_->assignment();
  starter_->on_started(assignment);
  reports_->on_started();
  event_recorder_->round_started(worker_starts(*host_, preloader_.get()));
  runner_->run([](auto& core, Instant, auto& effects) { core.on_started(effects); });
  watch_workers(assignment);
  if (faults_) faults_->on_started(assignment, config_.workers.nproc);
}

// Reports the processes that are still stuck after StuckReporter has read their state.
void AgentDaemon::Impl::on_stuck(const std::vector<std::string>& lines) {
  const std::vector<StuckProcess> stuck = host_->stuck();
  if (stuck.empty() || finish_) return;
  for (const std::string& line : lines) warn(line);
  std::string what = name_of(stuck.front());
  if (stuck.size() > 1) what += " and " + text::count(stuck.size() - 1, "other");
  runner_->run([&](auto& core, Instant, auto& effects) { core.on_stuck(what, effects); });
}

void AgentDaemon::Impl::carry_out(const agent::StopWorkers& effect) {
  goodput_->sample();
  event_recorder_->stopping(effect.keeps_survivors);
  unwatch_workers();
  if (effect.is_urgent) host_->be_urgent();
  if (effect.keeps_survivors) {
    host_->stop_but_survivors(effect.signal, effect.grace, config_.regroup_timeout, effect.hung);
  } else if (effect.lets_save) {
    host_->stop_saving(effect.signal, effect.grace);
  } else {
    host_->stop(effect.signal, effect.grace);
  }
}

void AgentDaemon::Impl::carry_out(const agent::ReservePort&) {
  const Result<int64_t> port = ports_.reserve_master();
  port ? runner_->run(&agent::Agent::on_port, *port)
       : runner_->run(&agent::Agent::on_unreachable, port.error());
}

void AgentDaemon::Impl::carry_out(const agent::Finish& effect) {
  finish_ = effect;
  progress_console_.on_end();
  const bool is_error = effect.how == agent::Finish::How::Error;
  bool is_cut_off = is_error && connection_ && !connection_->trouble().empty();
  if (is_error && !election_.trouble().empty()) {
    finish_->text += "; " + election_.trouble();
  } else if (is_cut_off) {
    finish_->text += "; tried last: " + to_string(coordinator_) + ": " + connection_->trouble();
  }
  close(true);  // no effect if an orderly disconnect is already under way
}

ElectionCallbacks AgentDaemon::Impl::election_callbacks() {
  ElectionCallbacks election_callbacks;
  election_callbacks.led_from = [this, way = poster_](const Endpoint& place) {
    LoopPoster::post(way, [this, place] { on_led_from(place); });
  };
  election_callbacks.no_election = [this, way = poster_](const std::string& why) {
    LoopPoster::post(way, [this, why] { election_.on_leader_unknown(why); });
  };
  return election_callbacks;
}

// There may be no connection yet: the agent scans its snapshots before it connects.
void AgentDaemon::Impl::on_led_from(const Endpoint& place) {
  if (finish_) return;
  election_.on_led();
  coordinator_ = place;
  log::info("the job is led from " + to_string(place));
  runner_->run([&](auto& core, Instant, auto& effects) { core.on_led_from(place, effects); });
}

}  // namespace cpprun

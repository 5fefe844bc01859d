#include "agent/daemon/daemon.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <deque>
#include <optional>
#include <utility>

#include "agent/core/agent.hpp"
#include "agent/core/worker_plan.hpp"
#include "agent/daemon/join_options.hpp"
#include "agent/daemon/report.hpp"
#include "agent/daemon/worker_specs.hpp"
#include "agent/process/cgroup.hpp"
#include "agent/process/clock.hpp"
#include "agent/process/guardian.hpp"
#include "agent/process/log_folder.hpp"
#include "agent/process/port_reservation.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/standard_streams.hpp"
#include "common/log/log.hpp"
#include "common/text.hpp"
#include "rendezvous/client/control_client.hpp"

namespace cpprun {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

std::array<uint8_t, 16> random_bytes() {
  std::array<uint8_t, 16> bytes{};
  CPPRUN_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return bytes;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

class AgentDaemon::Impl {
 public:
  explicit Impl(AgentConfig given)
      : config_(std::move(given)),
        host_name_(own_host_name()),
        loop_(1),
        timer_(loop_),
        signals_(loop_),
        guardian_fd_(loop_) {
    std::array<uint8_t, 16> id = random_bytes();
    token_ = text::hex(id);
    for (size_t i = 0; i < 8; ++i) incarnation_.value = incarnation_.value << 8 | id[i];
  }

  ~Impl() {
    if (!finish_) folder_.remove_if_temporary();  // nothing was ever started
  }

  Status prepare();
  Incarnation incarnation() const { return incarnation_; }
  int run(const Endpoint& coordinator, bool is_own);

 private:
  // Carries the effects of one call of the core out, and those of the calls that follow from them.
  template <class Call>
  void tell_core(Call call) {
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
  }

  void carry_out(const agent::Tell& effect) { connection_->send(effect.message); }
  void carry_out(const agent::Disconnect& effect);
  void carry_out(const agent::Reconnect&) { connection_->reconnect(); }
  void carry_out(const agent::StartWorkers& effect);
  void carry_out(const agent::StopWorkers& effect) { host_->stop(effect.signal, effect.grace); }
  void carry_out(const agent::WantPort&);
  void carry_out(const agent::Fence& effect) {
    guardian_->set_deadline(effect.deadline);
    fence_ = effect.deadline;
  }
  void carry_out(const agent::FirstFailure& effect) { report_->first_failure(effect); }
  void carry_out(const agent::Note& effect);
  void carry_out(const agent::Finish& effect);

  Status start_workers(const control::World& world);
  void start_host();
  void connect(bool is_own);
  void catch_signals();
  void wait_for_signal();
  void watch_guardian();
  void arm_timer();
  void on_timer();
  void close(bool is_reset);
  void end_loop();
  void leave_folder(bool is_success);

  const AgentConfig config_;
  const std::string host_name_;
  std::string token_;
  Incarnation incarnation_;
  Endpoint coordinator_;

  asio::io_context loop_;
  asio::steady_timer timer_;
  asio::signal_set signals_;
  asio::posix::stream_descriptor guardian_fd_;
  Instant armed_for_ = Instant::never();
  Instant fence_ = Instant::never();  // workers live until then

  std::unique_ptr<Guardian> guardian_;
  LogFolder folder_;
  std::optional<Report> report_;
  std::optional<PortReservation> port_;
  std::unique_ptr<ProcessHost> host_;
  std::unique_ptr<ControlClient> connection_;
  std::optional<agent::Agent> core_;

  std::deque<agent::Effect> queue_;
  bool is_carrying_out_ = false;
  bool is_closing_ = false;
  std::optional<agent::Finish> finish_;
};

// ---------------------------------------------------------------- before the loop

Status AgentDaemon::Impl::prepare() {
  if (Status ok = agent::check_virtual_devices(config_); !ok) return ok;
  std::signal(SIGPIPE, SIG_IGN);  // a closed stdout is an error of write, not our end
  if (config_.rendezvous.master_port && config_.rendezvous.worker_store == WorkerStore::Rank0) {
    Result<PortReservation> fixed = PortReservation::make(config_.rendezvous.master_port);
    if (!fixed) return fixed.error();
    port_.emplace(std::move(*fixed));
  }
  Result<LogFolder> folder =
      LogFolder::make(config_.logs.dir, config_.rendezvous.run_id, config_.temporary_dir);
  if (!folder) return folder.error();
  folder_ = std::move(*folder);
  // Before any thread is made.
  Result<std::unique_ptr<Guardian>> guardian = Guardian::start(token_, cgroup_folder(token_));
  if (!guardian) return guardian.error();
  guardian_ = std::move(*guardian);
  start_host();
  report_.emplace(config_, host_name_, folder_.run_folder());
  return {};
}

void AgentDaemon::Impl::start_host() {
  ProcessHost::Events events;
  events.on_end = [this](const WorkerEnd& end) {
    report_->worker_ended(end);
    tell_core([&](agent::Effects& e) { core_->on_worker_end(boot_now(), end, e); });
  };
  events.on_quiet = [this] {
    tell_core([&](agent::Effects& e) { core_->on_quiet(boot_now(), e); });
  };
  events.on_stdout_closed = [] { log::info("stdout was closed by its reader"); };
  events.on_note = [](const std::string& text) { log::info(text); };
  events.holds_grant = [this] { return boot_now() < fence_; };
  ProcessHost::Options options;
  options.token = token_;
  options.channel_name = "cpprun/agent/" + text::hex(random_bytes());
  host_ = std::make_unique<ProcessHost>(loop_, options, events);
}

// ---------------------------------------------------------------- the loop

int AgentDaemon::Impl::run(const Endpoint& coordinator, bool is_own) {
  coordinator_ = coordinator;
  if (config_.workers.set_omp_num_threads) report_->omp_banner();
  core_.emplace(join_options(config_, host_name_, incarnation_));
  catch_signals();
  watch_guardian();
  connect(is_own);
  tell_core([&](agent::Effects& e) { core_->start(boot_now(), e); });
  loop_.run();
  CPPRUN_CHECK(finish_.has_value());
  int code = report_->finish(*finish_);
  leave_folder(finish_->how == agent::Finish::How::Success);
  return code;
}

// A temporary folder stays for those who look for the reason of a failure, and only for them.
void AgentDaemon::Impl::leave_folder(bool is_success) {
  if (!folder_.is_temporary()) return;
  if (!is_success && folder_.holds_logs()) {
    log::warning("the logs of this run are kept in " + folder_.run_folder());
  } else {
    folder_.remove_if_temporary();
  }
}

void AgentDaemon::Impl::connect(bool is_own) {
  ControlClient::Events events;
  events.on_connected = [this](std::vector<std::string> addresses) {
    tell_core([&](agent::Effects& e) { core_->on_connected(boot_now(), addresses, e); });
  };
  events.on_message = [this](const control::CoordinatorMessage& message) {
    tell_core([&](agent::Effects& e) { core_->on_message(boot_now(), message, e); });
  };
  events.on_disconnected = [this] {
    tell_core([&](agent::Effects& e) { core_->on_disconnected(boot_now(), e); });
  };
  events.on_trouble = [](const std::string& text) { log::warning(text); };
  ControlClient::Options options{is_own, config_.rendezvous.say_waiting};
  connection_ = std::make_unique<ControlClient>(loop_, coordinator_, options, events);
}

void AgentDaemon::Impl::catch_signals() {
  error_code ignored;
  for (int number : config_.signals) signals_.add(number, ignored);
  wait_for_signal();
}

void AgentDaemon::Impl::wait_for_signal() {
  signals_.async_wait([this](error_code error, int number) {
    if (error) return;
    wait_for_signal();
    host_->hurry();
    tell_core([&](agent::Effects& e) { core_->on_signal(boot_now(), number, e); });
  });
}

// The guardian itself may be killed; it is replaced at once.
void AgentDaemon::Impl::watch_guardian() {
  guardian_fd_.assign(dup(guardian_->pidfd()));
  guardian_fd_.async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code error) {
    if (error) return;
    guardian_fd_.close();
    log::info("the guardian was killed; starting another");
    if (Status ok = guardian_->renew(); ok) {
      watch_guardian();
    } else {
      log::warning(ok.error().text);
    }
  });
}

void AgentDaemon::Impl::arm_timer() {
  Instant next = finish_ ? Instant::never() : core_->next_deadline();
  if (next == armed_for_) return;
  armed_for_ = next;
  timer_.cancel();
  if (next.is_never()) return;
  timer_.expires_after(std::max(Duration{}, next - boot_now()));
  timer_.async_wait([this](error_code error) {
    if (!error) on_timer();
  });
}

// A timer that was slept through (suspend, freeze) is acted on first: workers may have to go (R11).
// Mail comes after.
void AgentDaemon::Impl::on_timer() {
  armed_for_ = Instant::never();
  tell_core([&](agent::Effects& e) { core_->on_time(boot_now(), e); });
}

// ---------------------------------------------------------------- effects

void AgentDaemon::Impl::carry_out(const agent::Disconnect& effect) {
  close(effect.is_reset);
}

void AgentDaemon::Impl::close(bool is_reset) {
  if (std::exchange(is_closing_, true)) return;
  connection_->close(is_reset, [this] { end_loop(); });
}

void AgentDaemon::Impl::carry_out(const agent::StartWorkers& effect) {
  report_->round_started(effect.world);
  if (Status ok = start_workers(effect.world); !ok) {
    tell_core([&](agent::Effects& e) { core_->on_start_failed(boot_now(), ok.error(), e); });
  }
}

Status AgentDaemon::Impl::start_workers(const control::World& world) {
  int attempt = static_cast<int>(world.restart_count);
  Status ok = folder_.begin_attempt(attempt, world.round.value, config_.workers.nproc);
  if (!ok) return ok;
  int64_t port = world.store_port != 0 ? world.store_port : coordinator_.port;
  agent::WorkerPlace place;
  place.store = to_string(Endpoint{connection_->peer_address(), static_cast<uint16_t>(port)});
  place.token = token_;
  place.agent = host_->channel_name();
  place.host_name = host_name_;
  return host_->start(worker_specs(config_, world, folder_, std::move(place)));
}

void AgentDaemon::Impl::carry_out(const agent::WantPort&) {
  bool is_needed = config_.rendezvous.worker_store == WorkerStore::Rank0;
  if (is_needed && !config_.rendezvous.master_port) {
    port_.reset();
    Result<PortReservation> fresh = PortReservation::make(std::nullopt);
    if (!fresh) {
      tell_core([&](agent::Effects& e) { core_->on_unreachable(boot_now(), fresh.error(), e); });
      return;
    }
    port_.emplace(std::move(*fresh));
  }
  int64_t number = port_ ? port_->port() : 0;
  tell_core([&](agent::Effects& e) { core_->on_port(boot_now(), number, e); });
}

void AgentDaemon::Impl::carry_out(const agent::Note& effect) {
  switch (effect.level) {
    case agent::Note::Level::Debug:
      log::debug(effect.text);
      return;
    case agent::Note::Level::Info:
      log::info(effect.text);
      return;
    case agent::Note::Level::Warning:
      log::warning(effect.text);
      return;
  }
}

void AgentDaemon::Impl::carry_out(const agent::Finish& effect) {
  finish_ = effect;
  bool is_cut_off = effect.how == agent::Finish::How::Error && !connection_->trouble().empty();
  if (is_cut_off) {
    finish_->text += "; tried last: " + to_string(coordinator_) + ": " + connection_->trouble();
  }
  close(true);  // unless a farewell is already on its way
}

void AgentDaemon::Impl::end_loop() {
  CPPRUN_CHECK(finish_.has_value());
  loop_.stop();
}

// ---------------------------------------------------------------- the door

AgentDaemon::AgentDaemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AgentDaemon::~AgentDaemon() = default;

Result<std::unique_ptr<AgentDaemon>> AgentDaemon::make(AgentConfig config) {
  fill_standard_streams();  // before the loop opens its descriptors
  auto impl = std::make_unique<Impl>(std::move(config));
  if (Status ok = impl->prepare(); !ok) return ok.error();
  return std::unique_ptr<AgentDaemon>(new AgentDaemon(std::move(impl)));
}

Incarnation AgentDaemon::incarnation() const {
  return impl_->incarnation();
}
int AgentDaemon::run(const Endpoint& coordinator, bool is_own) {
  return impl_->run(coordinator, is_own);
}

}  // namespace cpprun

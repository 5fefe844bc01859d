#include "agent/rendezvous/rendezvous_client.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <utility>

#include "agent/core/agent.hpp"
#include "agent/rendezvous/rendezvous_lines.hpp"
#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/loop/effect_runner.hpp"
#include "common/loop/timer.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/identity.hpp"
#include "common/proof/node_id.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "rendezvous/client/control_client.hpp"

namespace cpprun {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int64_t kManyRestarts = 1'000'000'000;  // the other launcher counts its restarts itself

agent::AgentOptions agent_options(const RendezvousClientOptions& given) {
  const std::string key = random_hex();
  agent::AgentOptions options;
  options.hello = control::Hello{
      control::kProtocolVersion, version(), given.run_id, {own_host_name(), node_id_of(key)},
      first_connection_of(key),  key};
  control::JobSpec& job = options.facts.job_spec;
  job.min_nodes = given.min_nodes;
  job.max_nodes = given.max_nodes;
  job.max_restarts = kManyRestarts;
  job.is_agent_store = true;
  job.last_call = given.last_call.value_or(Duration{-1});
  job.scale_up_interval = limits::kScaleUpInterval;
  job.heartbeat = limits::kHeartbeat;
  job.lease = limits::kNodeLease;
  options.facts.local_addr = given.local_addr;
  options.facts.role = "default";
  options.facts.pid = ::getpid();
  options.endpoint = to_string(given.endpoint);
  options.join_timeout = given.join_timeout;
  options.stop_grace = limits::kStopGrace;
  return options;
}

// One run. The loop's thread calls everything.
class Session {
 public:
  explicit Session(const RendezvousClientOptions& options)
      : options_(options), core_(agent_options(options)) {}

  int run();

 private:
  template <class Other>
  void carry_out(const Other&) {}  // what needs workers, files or snapshots
  void carry_out(const agent::SendMessage& effect) { connection_->send(effect.message); }
  void carry_out(const agent::Disconnect& effect) { close(effect.is_reset); }
  void carry_out(const agent::Reconnect& effect) { connection_->reconnect(effect.is_elsewhere); }
  void carry_out(const agent::Routes& effect) {
    connection_->set_routes(effect.places, effect.is_sure, false);
  }
  void carry_out(const agent::ReservePort&) { runner_.run(&agent::Agent::on_port, int64_t{0}); }
  void carry_out(const agent::PrepareRound&) { runner_.run(&agent::Agent::on_prepared); }
  void carry_out(const agent::StartWorkers& effect);
  void carry_out(const agent::StopWorkers& effect);
  void carry_out(const agent::LogEvent& effect);
  void carry_out(const agent::Finish& effect);

  void connect();
  void give_up_connecting();
  void read_requests();
  void on_input(size_t size);
  void on_request(const RendezvousRequest& request);
  void on_failed_job(const std::string& why);
  WorkerExit exit_of_workers(int code) const;
  // The other launcher's workers are gone, or it does not start any more.
  void end_round();
  void leave();
  void write(const std::string& line);
  void close(bool is_reset);

  const RendezvousClientOptions options_;
  asio::io_context loop_{1};
  asio::posix::stream_descriptor input_{loop_};
  Timer connect_timer_{loop_, [this] { give_up_connecting(); }};
  agent::Agent core_;
  EffectRunner<agent::Agent, agent::Effects> runner_{
      loop_, core_, [this](const auto& effect) { carry_out(effect); }};
  std::unique_ptr<ControlClient> connection_;
  std::array<char, 4096> buffer_{};
  std::string unread_;  // an incomplete line
  Endpoint peer_;       // the coordinator, numeric
  std::string last_event_;
  Instant waits_since_ = boot_now();  // for a round
  Instant started_at_;                // of the round
  bool is_registered_ = false;        // a coordinator has answered
  bool has_round_ = false;            // the other launcher's workers may run
  bool is_stopping_ = false;          // they have to stop
  bool is_asked_ = false;             // the stop follows from a request
  bool is_over_ = false;              // the other launcher takes part in no further round
  bool is_closing_ = false;
  int code_ = kFailure;
};

int Session::run() {
  std::signal(SIGPIPE, SIG_IGN);
  log::open();
  error_code error;
  input_.assign(::dup(STDIN_FILENO), error);
  const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (error || flags < 0 || ::fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK) < 0) {
    log::failure("standard input and output must be pipes\nhint: this command is for programs");
    return kUsageError;
  }
  connect_timer_.set(boot_now() + options_.connect_timeout);
  connect();
  runner_.run(&agent::Agent::start);
  read_requests();
  loop_.run();
  return code_;
}

void Session::connect() {
  ControlClient::Events events;
  events.on_connected = [this](std::vector<std::string> addresses, const Endpoint& peer) {
    peer_ = peer;
    runner_.run(&agent::Agent::on_connected, std::move(addresses), peer);
  };
  events.on_message = [this](const control::CoordinatorMessage& message) {
    is_registered_ = true;
    connect_timer_.set(Instant::never());
    runner_.run(&agent::Agent::on_message, message);
  };
  events.on_disconnected = [this] { runner_.run(&agent::Agent::on_disconnected); };
  events.on_refused = [this](const std::vector<Endpoint>& places) {
    runner_.run(&agent::Agent::on_refused, places);
  };
  events.on_trouble = [](const std::string& text) { log::info(text); };
  events.on_found = [](const auto&) { return std::optional<Endpoint>(); };
  ControlClient::Options options;
  options.tls = options_.tls;
  connection_ = std::make_unique<ControlClient>(loop_, options_.endpoint, options, events);
}

void Session::give_up_connecting() {
  const std::string place = to_string(options_.endpoint);
  const std::string why = connection_->trouble().empty() ? "" : ": " + connection_->trouble();
  runner_.run(&agent::Agent::on_unreachable,
              Error{ErrorKind::Network, "no coordinator answers at " + place + why +
                                            "\nhint: start one with cpprunctl serve --listen=" +
                                            place + ", or check --rdzv-endpoint"});
}

void Session::carry_out(const agent::StartWorkers& effect) {
  if (is_over_) return leave();
  has_round_ = true;
  is_stopping_ = false;
  started_at_ = boot_now();
  const auto port = static_cast<uint16_t>(effect.assignment.master_port);
  write(round_line(effect.assignment, Endpoint{peer_.host, port}));
  runner_.run([](auto& core, Instant, auto& effects) { core.on_started(effects); });
}

void Session::carry_out(const agent::StopWorkers&) {
  if (!has_round_) return;
  if (is_over_) return end_round();
  if (std::exchange(is_stopping_, true) || is_asked_) return;
  write(restart_line(last_event_));
}

void Session::carry_out(const agent::LogEvent& effect) {
  using Level = agent::LogEvent::Level;
  last_event_ = effect.text;
  switch (effect.level) {
    case Level::Warning: return log::warning(effect.text);
    case Level::Status: return log::status(effect.text);
    default: return log::info(effect.text);
  }
}

void Session::carry_out(const agent::Finish& effect) {
  using How = agent::Finish::How;
  const bool is_late = boot_now() - waits_since_ >= options_.join_timeout;
  RendezvousEnd how = RendezvousEnd::Error;
  if (effect.how == How::Success) how = RendezvousEnd::Succeeded;
  if (effect.how == How::Failure) how = RendezvousEnd::Failed;
  if (effect.how == How::Signal || effect.how == How::Stopped) how = RendezvousEnd::Left;
  if (effect.how == How::Error && is_late) how = RendezvousEnd::Timeout;
  if (effect.how == How::Error && !is_registered_) how = RendezvousEnd::NoConnection;
  code_ = how == RendezvousEnd::Succeeded || how == RendezvousEnd::Left ? kSuccess : kFailure;
  write(end_line(how, effect.text));
  close(true);  // no effect if an orderly disconnect is already under way
}

void Session::read_requests() {
  input_.async_read_some(asio::buffer(buffer_), [this](error_code error, size_t size) {
    if (error) return leave();
    on_input(size);
    read_requests();
  });
}

void Session::on_input(size_t size) {
  unread_.append(buffer_.data(), size);
  for (size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    const Result<RendezvousRequest> request = parse_rendezvous_request(unread_.substr(0, end));
    unread_.erase(0, end + 1);
    if (request) {
      on_request(*request);
    } else {
      log::warning(request.error().text);
    }
  }
  if (unread_.size() <= limits::kRendezvousLineBytes) return;
  log::warning("a request is longer than " + std::to_string(limits::kRendezvousLineBytes) +
               " bytes");
  unread_.clear();
}

WorkerExit Session::exit_of_workers(int code) const {
  WorkerExit end;
  end.rank = Rank(static_cast<int>(core_.assignment().base_rank));
  end.exit_code = code;
  end.started_at = started_at_;
  end.ended_at = boot_now();
  end.ended_at_wall = wall_now();
  if (code != 0) end.last_lines = {"the launcher of this node restarts its workers"};
  return end;
}

void Session::end_round() {
  has_round_ = is_stopping_ = false;
  waits_since_ = boot_now();
  runner_.run(&agent::Agent::on_all_workers_gone);
}

void Session::on_request(const RendezvousRequest& request) {
  using What = RendezvousRequest::What;
  if (is_over_) return;
  is_over_ = request.what != What::Next;
  if (!has_round_) return is_over_ ? leave() : void();
  if (request.what == What::Fail && !is_stopping_) return on_failed_job(request.why);
  if (!is_stopping_) {
    is_asked_ = true;
    const int code = request.what == What::Close ? 0 : 1;
    runner_.run(&agent::Agent::on_worker_exit, exit_of_workers(code));
    is_asked_ = false;
    return end_round();
  }
  end_round();
  if (is_over_) leave();
}

// The coordinator ends the job for all nodes; its result ends this client.
void Session::on_failed_job(const std::string& why) {
  has_round_ = false;
  const std::string text = why.empty() ? "the job has failed on this node" : why;
  runner_.run(&agent::Agent::on_start_failed, Error{ErrorKind::BadValue, text});
}

void Session::leave() {
  is_over_ = true;
  runner_.run(&agent::Agent::on_signal, SIGINT);
}

// A pipe holds thousands of lines: a reader that lets it fill up is gone.
void Session::write(const std::string& line) {
  const ssize_t size = ::write(STDOUT_FILENO, line.data(), line.size());
  if (size == static_cast<ssize_t>(line.size()) || is_over_) return;
  log::error("the launcher does not read what the rendezvous client writes");
  is_over_ = true;
  asio::post(loop_, [this] { leave(); });
}

void Session::close(bool is_reset) {
  if (std::exchange(is_closing_, true)) return;
  connection_->close(is_reset, [this] { loop_.stop(); });
}

}  // namespace

int run_rendezvous_client(const RendezvousClientOptions& options) { return Session(options).run(); }

}  // namespace cpprun

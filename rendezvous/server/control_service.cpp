#include "rendezvous/server/control_service.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "common/check.hpp"
#include "common/log/log.hpp"
#include "common/loop/effect_runner.hpp"
#include "rendezvous/coordinator/late_wakeup_guard.hpp"
#include "rendezvous/observe/history_recorder.hpp"
#include "rendezvous/observe/job_metrics.hpp"
#include "rendezvous/observe/status.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/server/admin_authenticator.hpp"
#include "rendezvous/server/dashboard/dashboard_service.hpp"
#include "rendezvous/server/log_rate_limiter.hpp"
#include "rendezvous/server/log_relay.hpp"
#include "rendezvous/server/peer_log.hpp"

namespace cpprun {

namespace asio = boost::asio;

namespace {

// On a network every node must prove its incarnation with its key.
CoordinatorOptions with_keys(CoordinatorOptions options) {
  CPPRUN_CHECK(options.node_id_of != nullptr);
  return options;
}

}  // namespace

struct ControlService::Impl {
  // Expires deadlines only as LateWakeupGuard permits.
  class GuardedCoordinator : public Coordinator {
   public:
    using Coordinator::Coordinator;
    Instant next_deadline() const { return guard_.look_at(Coordinator::next_deadline()); }
    void on_time(Instant now, Effects& effects) {
      if (guard_.may_expire(now, Coordinator::next_deadline())) Coordinator::on_time(now, effects);
    }

   private:
    LateWakeupGuard guard_;
  };

  Impl(asio::io_context& loop, CoordinatorOptions options)
      : core_(with_keys(std::move(options))),
        dashboard_(core_, job_history_,
                   [this](const auto& call) {
                     runner_.run([&](Coordinator&, Instant, Effects& e) { call(e); });
                   }),
        runner_(loop, core_, [this](const auto& effect) { carry_out(effect); },
                {.after_event = [this](Instant now) { job_history_.update(now, core_); },
                 .may_carry_out = [this] { return may_speak(); },
                 .after_effects = [this] { check_idle(); }}) {}

  void fill(ServerHooks& hooks) {
    hooks.make_control_session = [this](Connection& c) { return make_session(c); };
    hooks.store_for_main_port = [this] { return main_store_; };
    hooks.may_use_store = [this](const Connection& c, uint16_t port) {
      return may_use_store(c, port);
    };
    hooks.status_json = [this] { return status_json(core_); };
    dashboard_.fill(hooks);
    hooks.metrics = [this](prometheus::Format format) {
      return job_metrics(core_, job_history_, format);
    };
  }

  void on_message(SessionId session, control::AgentMessage message) {
    if (const auto* hello = std::get_if<control::AdminHello>(&message)) {
      return on_admin_hello(session, *hello);
    }
    if (const auto* admin_request = std::get_if<control::AdminRequest>(&message)) {
      return on_admin_request(session, *admin_request);
    }
    if (auto* request = std::get_if<control::LogRequest>(&message)) {
      return on_log_request(session, std::move(*request));
    }
    if (auto* reply = std::get_if<control::LogReply>(&message)) {
      return log_relay_.on_reply(session, std::move(*reply));
    }
    if (const auto* command = std::get_if<control::AdminCommand>(&message)) {
      const Job* job = core_.job_of(session);
      if (job != nullptr && job->needs_admin_token()) return challenge(session, *command);
    }
    agents_.insert(session);
    // The peer is a coordinator.
    if (std::holds_alternative<control::AnnounceLeader>(message)) agents_.erase(session);
    runner_.run(&Coordinator::on_message, session, std::move(message));
  }

  void on_closed(SessionId session, CloseKind kind) {
    connections_.erase(session);
    agents_.erase(session);
    authenticator_.on_closed(session);
    log_relay_.on_closed(session);
    auto how = kind == CloseKind::Fin ? Job::Ending::Fin : Job::Ending::Reset;
    runner_.run(&Coordinator::on_closed, session, how);
    check_idle();
  }

  // Ports of the store of a job's running round and of the one prepared for the next.
  struct Stores {
    uint16_t current = 0;
    uint16_t next = 0;
    bool is_on_main_port = false;
  };

  const Job* job_with_store(uint16_t port) const {
    for (const auto& [run_id, stores] : stores_) {
      const bool is_it =
          port == 0 ? stores.is_on_main_port : port == stores.current || port == stores.next;
      if (!is_it) continue;
      const auto job = core_.jobs().find(run_id);
      return job == core_.jobs().end() ? nullptr : job->second.get();
    }
    return nullptr;
  }

  // TCPStore has no authentication, so the address is all that a client shows.
  bool may_use_store(const Connection& client, uint16_t port) {
    const Job* job = job_with_store(port);
    if (job == nullptr || !job->job_spec().is_agent_store) return true;
    const std::string peer = client.peer_address();
    if (job->is_from_member({peer, client.local_address()})) return true;
    const bool is_refused = job->job_spec().is_store_for_members;
    peer_log_.warning("a client from " + peer + ", an address of no node of the job '" +
                      job->run_id() + "', " +
                      (is_refused ? "was refused the workers' store (--store-allow=members)"
                                  : "uses the workers' store (--store-allow=members refuses it)"));
    return !is_refused;
  }

  class AgentSession;
  std::unique_ptr<Session> make_session(Connection& connection);

  std::string address_of(SessionId session) const {
    const auto found = connections_.find(session);
    return found == connections_.end() ? "" : found->second->peer_address();
  }

  void on_admin_hello(SessionId session, const control::AdminHello& message) {
    Result<std::string> nonce =
        authenticator_.on_admin_hello(boot_now(), session, address_of(session), message);
    if (!nonce) return refuse(session, nonce.error().text);
    carry_out(Send{session, control::Challenge{*nonce}});
  }

  // An agent forwards a command of an operator at its node.
  void challenge(SessionId session, const control::AdminCommand& command) {
    if (!authenticator_.has_token()) {
      return answer(session, {command.id, false,
                              "the job was started with CPPRUN_ADMIN_TOKEN, and the agent that "
                              "leads it now has none; cpprunctl stop --here stops the nodes of one "
                              "machine"});
    }
    Result<std::string> nonce =
        authenticator_.on_admin_command(boot_now(), session, address_of(session), command.id);
    if (!nonce) return answer(session, {command.id, false, nonce.error().text});
    carry_out(Send{session, control::Challenge{*nonce, command.id}});
  }

  void answer(SessionId session, control::AdminReply reply) {
    if (!reply.is_done) {
      log_refusal("refused an admin command from " + address_of(session) + ": " + reply.text);
    }
    carry_out(Send{session, std::move(reply)});
  }

  Status may_do(Instant now, SessionId session, const std::string& peer,
                const control::AdminRequest& request) {
    const Job* job = core_.job_of(session);
    if (job != nullptr && job->run_id() != request.run_id) {
      return Error{ErrorKind::Refused, "an agent forwards admin commands of its own job only"};
    }
    return authenticator_.on_command(now, session, peer, request);
  }

  void on_admin_request(SessionId session, const control::AdminRequest& request) {
    const std::string peer = address_of(session);
    const bool is_agents = core_.job_of(session) != nullptr;
    if (Status may = may_do(boot_now(), session, peer, request); !may) {
      if (is_agents) return answer(session, {request.command.id, false, may.error().text});
      log_refusal("refused an admin command from " + peer + ": " + may.error().text);
      return refuse(session, may.error().text);
    }
    if (is_agents) {
      return runner_.run(&Coordinator::on_message, session, request.command);
    }
    runner_.run([&](Coordinator& core, Instant now, Effects& effects) {
      Effects follows;
      const control::AdminReply answer =
          core.on_admin_command(now, request.run_id, request.command, peer, follows);
      effects.push_back(Send{session, answer});
      effects.emplace_back(Close{session, false});
      effects.insert(effects.end(), follows.begin(), follows.end());
    });
  }

  void on_log_request(SessionId session, control::LogRequest request) {
    if (core_.job_of(session) != nullptr) return;  // agents read no files of others
    if (!log_relay_.is_admitted(session)) {
      Status may = authenticator_.on_log_request(boot_now(), session, address_of(session), request);
      if (may) may = log_relay_.admit(session, request.run_id);
      if (!may) {
        log_refusal("refused log files to " + address_of(session) + ": " + may.error().text);
        return refuse(session, may.error().text);
      }
    }
    log_relay_.on_request(session, std::move(request));
  }

  void log_refusal(const std::string& text) { peer_log_.warning(text); }

  void refuse(SessionId session, const std::string& why) {
    carry_out(Send{session, control::Refused{why}});
    carry_out(Close{session, false});
  }

  // After a suspend, or without contact to etcd, another coordinator may have been elected.
  bool may_speak() const {
    return !is_writing_ && (persist_state_ == nullptr || core_.is_in_charge(boot_now()));
  }

  void carry_out(const Send& effect) {
    auto it = connections_.find(effect.session);
    if (it == connections_.end()) return;
    std::vector<uint8_t> frame;
    Status fits = control::try_append_frame(frame, control::encode(effect.message));
    if (!fits) return break_off(*it->second, fits.error());
    it->second->send(std::string_view(reinterpret_cast<const char*>(frame.data()), frame.size()));
  }

  // Messages contain texts of other peers, so a message may be too long for a frame. Only this
  // connection pays for it.
  void break_off(Connection& connection, const Error& error) {
    peer_log_.error("resetting the control connection from " + connection.peer_address() + ": " +
                    error.text);
    connection.reset();
  }

  void carry_out(const Close& effect) {
    auto it = connections_.find(effect.session);
    if (it == connections_.end()) return;
    if (effect.is_reset) {
      it->second->reset();
    } else {
      it->second->close();
    }
  }

  void carry_out(const WantStorePort& effect) {
    CPPRUN_CHECK(server_ != nullptr);
    Result<uint16_t> port = server_->open_store_listener(address_, 0, server_->make_store());
    if (!port) peer_log_.warning(port.error().text);
    int64_t number = port ? *port : 0;
    if (port) stores_[effect.run_id].next = *port;
    runner_.run(&Coordinator::on_store_port, effect.run_id, number);
  }

  void carry_out(const ServeStore& effect) {
    Stores& stores = stores_[effect.run_id];
    if (effect.port == 0) {
      main_store_ = server_->make_store();
      stores.is_on_main_port = true;
      return;
    }
    if (stores.current != 0) server_->close_store_listener(stores.current);
    stores.current = std::exchange(stores.next, uint16_t{0});
  }

  void carry_out(const DropStores& effect) {
    auto it = stores_.find(effect.run_id);
    if (it == stores_.end()) return;
    Stores stores = it->second;
    stores_.erase(it);
    if (stores.is_on_main_port) main_store_.reset();
    for (uint16_t port : {stores.current, stores.next}) {
      if (port != 0) server_->close_store_listener(port);
    }
  }

  void carry_out(const PersistState& effect) {
    CPPRUN_CHECK(persist_state_ != nullptr);
    is_writing_ = true;
    persist_state_(effect.facts);
  }

  void carry_out(const LogEvent& effect) {
    if (effect.level == LogEvent::Level::Debug) return log::debug(effect.text);
    // Foreign clients can cause these, too: any node may register, and fall silent.
    constexpr std::array kOfPeers = {"refused", "full", "node_lost", "two_jobs"};
    const bool is_of_peer =
        std::find(kOfPeers.begin(), kOfPeers.end(), effect.event) != kOfPeers.end();
    if (is_of_peer && !event_limit_.may_log(boot_now(), effect.text)) return;
    const LogRateLimiter::Line line = event_limit_.next_line(boot_now());
    if (line == LogRateLimiter::Line::LeftOut) return;
    effect.level == LogEvent::Level::Info ? log::info(effect.text) : log::warning(effect.text);
    if (line == LogRateLimiter::Line::LastOne) {
      log::warning("the coordinator has logged " + std::to_string(limits::kCoordinatorLogLines) +
                   " messages within a minute; the next ones are left out here");
    }
  }

  void check_idle() {
    const bool is_needed = !agents_.empty() && !core_.may_exit();
    if (!is_needed && on_idle_) std::exchange(on_idle_, nullptr)();
  }

  GuardedCoordinator core_;
  HistoryRecorder job_history_;
  AdminAuthenticator authenticator_;
  LogRelay log_relay_{core_, [this](SessionId to, control::CoordinatorMessage message) {
                        carry_out(Send{to, std::move(message)});
                      }};
  DashboardService dashboard_;
  PeerLog peer_log_;
  LogRateLimiter event_limit_;  // of the coordinator's events
  EffectRunner<GuardedCoordinator, Effects> runner_;
  Server* server_ = nullptr;
  std::string address_;
  std::shared_ptr<Store> main_store_;
  std::map<std::string, Stores> stores_;  // by run id
  std::map<SessionId, Connection*> connections_;
  std::set<SessionId> agents_;  // connections that sent a whole message of an agent
  bool is_writing_ = false;     // the state is being written; the queue waits for it
  std::function<void(const control::PersistedJobState&)> persist_state_;
  std::function<void()> on_idle_;
};

// The framing of one agent's connection: magic, then frames. Owner: its connection.
class ControlService::Impl::AgentSession final : public Session {
 public:
  AgentSession(Impl& service, Connection& connection)
      : service_(service), connection_(connection), id_(connection.id()) {}

  size_t on_bytes(std::span<const uint8_t> bytes) override {
    size_t used = 0;
    if (!has_completed_handshake_) {
      if (bytes.size() < sizeof(control::kMagic)) return 0;
      if (!std::equal(std::begin(control::kMagic), std::end(control::kMagic), bytes.begin())) {
        return broken("its first bytes are wrong", bytes.size());
      }
      used = sizeof(control::kMagic);
    }
    while (connection_.is_open()) {
      control::FrameView frame = control::next_frame(bytes.subspan(used));
      // The magic alone does not complete the handshake: such a peer counts as silent and is
      // dropped.
      if (frame.state == control::FrameView::State::NeedMore)
        return has_completed_handshake_ ? used : 0;
      if (frame.state == control::FrameView::State::Broken) {
        return broken("a frame has an impossible length", bytes.size());
      }
      Result<control::AgentMessage> message = control::decode_agent(frame.body);
      if (!message) return broken(message.error().text, bytes.size());
      used += frame.consumed;
      has_completed_handshake_ = true;
      is_settled_ = is_settled_ || !is_greeting(*message);
      service_.on_message(id_, *std::move(message));
    }
    return bytes.size();
  }

  bool is_settled() const override { return is_settled_; }

  // The coordinator's state belongs to all agents.
  bool is_isolated() const override { return false; }

  void on_closed(CloseKind kind) override { service_.on_closed(id_, kind); }

 private:
  static bool is_greeting(const control::AgentMessage& message) {
    return std::holds_alternative<control::Hello>(message) ||
           std::holds_alternative<control::AdminHello>(message);
  }

  // A bad peer loses its own connection and nothing else.
  size_t broken(const std::string& why, size_t all) {
    service_.peer_log_.info("closing the control connection from " + connection_.peer_address() +
                            ": " + why);
    connection_.reset();
    return all;
  }

  Impl& service_;
  Connection& connection_;
  const SessionId id_;
  bool has_completed_handshake_ = false;
  bool is_settled_ = false;
};

std::unique_ptr<Session> ControlService::Impl::make_session(Connection& connection) {
  connections_[connection.id()] = &connection;
  core_.on_connected(connection.id(), {connection.peer_address(), connection.local_address()});
  return std::make_unique<AgentSession>(*this, connection);
}

ControlService::ControlService(asio::io_context& loop, CoordinatorOptions options)
    : impl_(std::make_unique<Impl>(loop, std::move(options))) {}
ControlService::~ControlService() = default;

void ControlService::fill(ServerHooks& hooks) { impl_->fill(hooks); }

std::string ControlService::status(const ServerStats& server) const {
  return status_json(impl_->core_, server);
}

void ControlService::accept_admin_commands(std::string token,
                                           std::function<std::string()> make_nonce) {
  impl_->dashboard_.open_logs(token, make_nonce);
  impl_->authenticator_.open(std::move(token), std::move(make_nonce));
}

void ControlService::attach(Server& server, std::string address) {
  impl_->server_ = &server;
  impl_->address_ = std::move(address);
}

void ControlService::when_idle(bool is_exiting, std::function<void()> then) {
  impl_->on_idle_ = std::move(then);
  impl_->runner_.run(&Coordinator::on_host_agent_ended, is_exiting);
  impl_->check_idle();
}

void ControlService::when_persisting(std::function<void(const control::PersistedJobState&)> write) {
  impl_->persist_state_ = std::move(write);
}

void ControlService::on_persisted() {
  impl_->is_writing_ = false;
  impl_->runner_.resume();
}

void ControlService::lead_until(Instant until) {
  impl_->core_.lead_until(until);
  impl_->runner_.resume();
}

bool ControlService::is_idle() const { return impl_->core_.is_idle(); }
void ControlService::close() { impl_->runner_.close(); }
}  // namespace cpprun

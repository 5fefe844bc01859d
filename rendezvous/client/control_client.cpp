#include "rendezvous/client/control_client.hpp"

#include <sys/socket.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <span>

#include "common/log/log.hpp"
#include "common/loop/effect_runner.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/own_addresses.hpp"
#include "common/machine/port_owner.hpp"
#include "common/thread/loop_mark.hpp"
#include "rendezvous/client/connector.hpp"
#include "rendezvous/client/core/reconnect_policy.hpp"
#include "rendezvous/client/store_probe.hpp"
#include "rendezvous/client/tls_handshake.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

struct ControlClient::Impl : std::enable_shared_from_this<Impl> {
  Impl(asio::io_context& loop, Endpoint endpoint, Options options, Events events)
      : loop_(loop),
        endpoint_(endpoint),
        events_(std::move(events)),
        job_tls_(std::move(options.tls)),
        core_({std::move(endpoint), options.is_own, options.wait_reminder_interval,
               options.back_off_max, options.is_led_by_election, std::move(options.further_ports)}),
        runner_(loop, core_, [this](const auto& effect) { carry_out(effect); }) {}

  void start() {
    runner_.run([](auto& core, Instant, auto& effects) { core.start(effects); });
  }

  void send(const control::AgentMessage& message) {
    if (!socket_ || is_closing_) return;
    Status fits = control::try_append_frame(pending_, control::encode(message));
    if (!fits) {  // it contains texts of a coordinator; another one may send shorter ones
      log::error("the connection to the coordinator is reset: " + fits.error().text);
      return reconnect(false);
    }
    flush_soon();
  }

  void close(bool is_reset, std::function<void()> on_gone) {
    is_closing_ = true;
    is_reset_ = is_reset;
    on_gone_ = std::move(on_gone);
    stop_trying();
    if (!socket_ || is_reset || (!is_writing_ && pending_.empty())) return shut_soon();
    flush_soon();
  }

  // The caller found the connection useless, for a reason unknown here; a new one may work.
  void reconnect(bool is_elsewhere) {
    asio::post(loop_, [self = shared_from_this(), current = socket_.get(), is_elsewhere] {
      if (self->socket_.get() == current && current != nullptr && !self->is_closing_)
        self->broken(is_elsewhere);
    });
  }

  void carry_out(const ReconnectPolicy::Connect&) {
    stop_connecting();  // its target is outdated
    Connector::Found found;
    if (core_.target() == endpoint_) {
      found = [this](const auto& addresses) { return this->found(addresses); };
    }
    connector_ = Connector::start(
        loop_, core_.target(),
        [self = shared_from_this()](Connector::Outcome outcome) {
          self->on_attempt(std::move(outcome));
        },
        std::move(found), events_.connect_in_process, last_known());
  }
  // Where the target's name led last. A host that is gone takes its name along (a pod's), and only
  // a refused connection proves that the coordinator is dead (R4).
  std::optional<Endpoint> last_known() const {
    const bool is_known = !last_peer_.host.empty() && last_target_ == core_.target();
    return is_known ? std::optional(last_peer_) : std::nullopt;
  }
  void carry_out(const ReconnectPolicy::ResetConnection&) {
    drop_socket(true);
    if (is_closing_) shut_soon();  // nothing is written any more
  }
  void carry_out(const ReconnectPolicy::Broken&) {
    if (events_.on_disconnected) events_.on_disconnected();
  }
  void carry_out(const ReconnectPolicy::Probe& probe) {
    probe_ = StoreProbe::start(loop_, probe.place, [self = shared_from_this()](bool is_store) {
      self->probe_.reset();
      self->runner_.run(&ReconnectPolicy::on_probed, is_store, self->owner_of_endpoint());
    });
  }
  // Of the port that was probed; "": it is not on this machine, or not known.
  std::string owner_of_endpoint() const {
    if (first_own_address({last_peer_.host}).empty()) return "";
    const Unblocking procfs("entries of /proc that take no lock of a process's memory");
    return port_owner(endpoint_.port);
  }
  void carry_out(const ReconnectPolicy::Refused& refused) {
    if (events_.on_refused) events_.on_refused(refused.places);
  }
  void carry_out(const ReconnectPolicy::Trouble& trouble) {
    if (events_.on_trouble) events_.on_trouble(trouble.text);
  }

  void stop_trying() {
    core_.close();
    runner_.resume();
    stop_connecting();
    if (probe_) probe_->cancel();
  }

  void stop_connecting() {
    if (connector_) connector_->cancel();
    if (handshake_) std::exchange(handshake_, nullptr)->cancel();
  }

  void on_attempt(Connector::Outcome outcome) {
    connector_.reset();
    if (is_closing_) return;
    if (!outcome.socket) {
      runner_.run(&ReconnectPolicy::on_connect_failed, outcome.why, outcome.refused);
      return;
    }
    if (!job_tls_) return on_ready(std::move(outcome));
    auto socket = std::move(outcome.socket);
    const auto rest = std::make_shared<Connector::Outcome>(std::move(outcome));
    handshake_ =
        TlsHandshake::start(std::move(socket), job_tls_->connect(TlsRole::Coordinator),
                            [self = shared_from_this(), rest](TlsHandshake::Outcome secured) {
                              self->handshake_.reset();
                              if (self->is_closing_) return;
                              if (!secured.socket) return self->on_insecure(secured.why);
                              rest->socket = std::move(secured.socket);
                              self->tls_ = std::move(secured.stream);
                              self->on_ready(std::move(*rest));
                            });
  }

  // A handshake that fails proves nothing about the coordinator: another program that listens
  // there may have caused it. So the client tries again, and warns the user at once.
  void on_insecure(const std::string& why) {
    warn_insecure(why);
    runner_.run(&ReconnectPolicy::on_connect_failed, "no TLS: " + why, std::vector<Endpoint>());
  }

  // At once, unlike other trouble, which may pass: a wrong secret stays wrong. Each reason once in
  // a row, and at most one line every 2 s.
  void warn_insecure(const std::string& why) {
    std::string text = to_string(core_.target()) + ": " + why;
    const Instant now = boot_now();
    const bool is_due = !insecure_warned_at_ || now - *insecure_warned_at_ >= limits::kHelloTimeout;
    if (insecure_warning_ == text || !is_due) return;
    log::warning("no TLS with the coordinator at " + text);
    insecure_warning_ = std::move(text);
    insecure_warned_at_ = now;
  }

  void on_ready(Connector::Outcome outcome) {
    socket_ = std::move(outcome.socket);
    pending_.assign(std::begin(control::kMagic), std::end(control::kMagic));
    runner_.run([](auto& core, Instant now, auto&) { core.on_connected(now); });
    read();
    last_target_ = core_.target();
    last_peer_ = outcome.peer;
    if (events_.on_connected) events_.on_connected({outcome.local_address}, outcome.peer);
  }

  void read() {
    socket_->async_read_some(
        asio::buffer(chunk_),
        [self = shared_from_this(), current = socket_.get()](error_code error, size_t size) {
          if (self->socket_.get() != current) return;
          if (error) {
            self->broken();
            return;
          }
          self->take_bytes(std::span(self->chunk_).first(size));
          const bool continues = self->take_messages() && self->socket_.get() == current;
          if (continues && self->has_tls_failed()) return self->on_tls_failed();
          if (continues) self->read();
        });
  }

  void take_bytes(std::span<const uint8_t> bytes) {
    if (!tls_) return core_.on_bytes(bytes);
    tls_->feed(bytes);
    std::array<uint8_t, 4096> plain;
    while (const size_t size = tls_->read(plain)) core_.on_bytes(std::span(plain).first(size));
    flush();  // TLS may have to answer
  }

  bool has_tls_failed() const { return tls_ && tls_->state() == TlsStream::State::Failed; }

  // Such as a certificate that the coordinator refuses, which it reports only after the handshake.
  void on_tls_failed() {
    const std::string why = tls_->why();
    warn_insecure(why);
    broken(false, "no TLS: " + why);
  }

  // False: the connection has ended.
  bool take_messages() {
    const tcp::socket* current = socket_.get();
    while (socket_.get() == current) {
      std::optional<control::CoordinatorMessage> message;
      runner_.run([&](auto& core, Instant now, auto& effects) {
        message = core.next_message(now, effects);
      });
      if (!message) return socket_.get() == current;
      if (events_.on_message) events_.on_message(*message);
    }
    return false;
  }

  // Messages of one turn of the loop wake the coordinator once.
  void flush_soon() {
    if (std::exchange(is_flush_posted_, true)) return;
    asio::post(loop_, [self = shared_from_this()] {
      self->is_flush_posted_ = false;
      self->flush();
    });
  }

  void flush() {
    if (is_writing_ || !has_output() || !socket_) return;
    is_writing_ = true;
    writing_.swap(pending_);
    if (tls_) encrypt();
    asio::async_write(*socket_, asio::buffer(writing_),
                      [self = shared_from_this(), current = socket_.get()](
                          error_code error, size_t) { self->on_written(error, current); });
  }

  bool has_output() const { return !pending_.empty() || (tls_ && tls_->output_size() > 0); }

  void encrypt() {
    tls_->write(writing_);
    const std::string encrypted = tls_->take_output();
    writing_.assign(encrypted.begin(), encrypted.end());
  }

  void on_written(error_code error, const tcp::socket* on) {
    if (socket_.get() != on) return;
    is_writing_ = false;
    writing_.clear();
    if (error) {
      broken();
    } else if (has_output()) {
      flush();
    } else if (is_closing_) {
      shut();
    }
  }

  void broken(bool is_elsewhere = false, const std::string& why = "") {
    runner_.run([&](auto& core, Instant now, auto& effects) {
      core.on_broken(now, effects, is_elsewhere, why);
    });
  }

  void shut_soon() {
    asio::post(loop_, [self = shared_from_this()] { self->shut(); });
  }

  void shut() {
    drop_socket(is_reset_);
    if (auto on_gone = std::exchange(on_gone_, nullptr)) on_gone();
  }

  // The coordinator takes a FIN for a deliberate leave, so all other ends are resets (R4).
  void drop_socket(bool is_reset) {
    if (!socket_) return;
    error_code ignored;
    if (is_reset) socket_->set_option(asio::socket_base::linger(true, 0), ignored);
    if (!is_reset && tls_) shut_down_tls();
    if (!is_reset) socket_->shutdown(tcp::socket::shutdown_send, ignored);
    socket_->close(ignored);
    socket_.reset();
    tls_.reset();
    is_writing_ = false;
    pending_.clear();
    writing_.clear();
  }

  // What the peer must know, it knows by now; it also takes a FIN without this.
  void shut_down_tls() {
    tls_->end_output();
    const std::string last = tls_->take_output();
    ::send(socket_->native_handle(), last.data(), last.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Asks the owner whether this process serves the job's endpoint from now on.
  std::optional<Endpoint> found(const std::vector<std::string>& addresses) {
    if (is_closing_ || !events_.on_found) return std::nullopt;
    const std::optional<Endpoint> own = events_.on_found(addresses);
    if (own) core_.set_routes({*own}, true, true);
    return own;
  }

  asio::io_context& loop_;
  const Endpoint endpoint_;  // the job's
  Events events_;
  const std::shared_ptr<const JobTls> job_tls_;  // null: plain connections
  ReconnectPolicy core_;
  EffectRunner<ReconnectPolicy, ReconnectPolicy::Effects> runner_;
  std::shared_ptr<Connector> connector_;
  std::shared_ptr<StoreProbe> probe_;
  std::unique_ptr<tcp::socket> socket_;
  std::shared_ptr<TlsHandshake> handshake_;
  std::unique_ptr<TlsStream> tls_;  // of socket_
  std::string insecure_warning_;    // the last warning about TLS
  std::optional<Instant> insecure_warned_at_;
  Endpoint last_target_;  // of the last connection
  Endpoint last_peer_;    // its numeric address

  std::array<uint8_t, 4096> chunk_{};
  std::vector<uint8_t> pending_;  // next to write
  std::vector<uint8_t> writing_;  // being written
  bool is_writing_ = false;
  bool is_flush_posted_ = false;
  bool is_closing_ = false;
  bool is_reset_ = false;
  std::function<void()> on_gone_;
};

ControlClient::ControlClient(asio::io_context& loop, Endpoint endpoint, Options options,
                             Events events)
    : impl_(std::make_shared<Impl>(loop, std::move(endpoint), options, std::move(events))) {
  impl_->start();
}
ControlClient::~ControlClient() {
  impl_->events_ = Events{};  // no callback follows
  impl_->on_gone_ = nullptr;
  impl_->is_closing_ = true;
  impl_->stop_trying();
  impl_->drop_socket(true);
}
void ControlClient::send(const control::AgentMessage& message) { impl_->send(message); }
void ControlClient::close(bool is_reset, std::function<void()> on_gone) {
  impl_->close(is_reset, std::move(on_gone));
}
void ControlClient::reconnect(bool is_elsewhere) { impl_->reconnect(is_elsewhere); }
void ControlClient::set_routes(const std::vector<Endpoint>& places, bool is_sure, bool is_own) {
  impl_->core_.set_routes(places, is_sure, is_own);
  impl_->runner_.resume();
}
const std::string& ControlClient::trouble() const { return impl_->core_.trouble(); }
std::string ControlClient::peer_address() const {
  return impl_->socket_ ? impl_->last_peer_.host : "";
}

}  // namespace cpprun

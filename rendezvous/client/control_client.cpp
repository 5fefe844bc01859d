#include "rendezvous/client/control_client.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <span>

#include "common/limits.hpp"
#include "common/text.hpp"
#include "rendezvous/client/attempt.hpp"
#include "rendezvous/client/store_probe.hpp"
#include "rendezvous/protocol/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {
constexpr const char* kStoreMet =
    "what listens there is torch's TCPStore (a torchrun agent, or a script that serves it); start "
    "all agents with cpprun, or give another port";
}  // namespace

class ControlClient::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Endpoint endpoint, Options options, Events events)
      : loop_(loop),
        endpoint_(std::move(endpoint)),
        options_(options),
        events_(std::move(events)),
        timer_(loop) {}

  void connect() {
    attempt_ =
        Attempt::start(loop_, endpoint_, [self = shared_from_this()](Attempt::Outcome outcome) {
          self->on_attempt(std::move(outcome));
        });
  }

  void send(const control::AgentMessage& message) {
    if (!socket_ || is_closing_) return;
    control::append_frame(pending_, control::encode(message));
    flush();
  }

  void close(bool is_reset, std::function<void()> on_gone) {
    is_closing_ = true;
    is_reset_ = is_reset;
    on_gone_ = std::move(on_gone);
    stop_trying();
    if (!socket_ || is_reset || (!is_writing_ && pending_.empty())) {
      asio::post(loop_, [self = shared_from_this()] { self->shut(); });
    }
  }

  // The owner is gone: nothing is called any more.
  void abandon() {
    events_ = Events{};
    on_gone_ = nullptr;
    is_closing_ = true;
    stop_trying();
    drop_socket(true);
  }

  // What is wrong with the connection that we have is not known here; a new one may be better.
  void reconnect() {
    asio::post(loop_, [self = shared_from_this(), current = socket_.get()] {
      if (self->socket_.get() == current && current != nullptr && !self->is_closing_)
        self->broken();
    });
  }

  const std::string& trouble() const { return newest_trouble_; }

  std::string peer_address() const {
    if (!socket_) return "";
    error_code ignored;
    return unmapped(socket_->remote_endpoint(ignored).address());
  }

 private:
  static std::string unmapped(const asio::ip::address& address) {
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
      return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
    }
    return address.to_string();
  }

  void stop_trying() {
    timer_.cancel();
    if (attempt_) attempt_->cancel();
    if (probe_) probe_->cancel();
  }

  void on_attempt(Attempt::Outcome outcome) {
    attempt_.reset();
    if (is_closing_) return;
    if (!outcome.socket) {
      say_trouble(outcome.why);
      retry();
      return;
    }
    socket_ = std::move(outcome.socket);
    pending_.assign(std::begin(control::kMagic), std::end(control::kMagic));
    input_.clear();
    is_welcomed_ = false;
    has_said_nonsense_ = false;
    connected_at_ = std::chrono::steady_clock::now();
    if (!options_.is_own) watch_for_welcome();
    read();
    error_code ignored;
    std::vector<std::string> own{unmapped(socket_->local_endpoint(ignored).address())};
    if (events_.on_connected) events_.on_connected(std::move(own));
  }

  void retry() {
    timer_.expires_after(back_off_);
    back_off_ = std::min(back_off_ * 2, limits::kReconnectMax);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error && !self->is_closing_) self->connect();
    });
  }

  // Whoever does not answer like a coordinator is none: a torch store, an ssh server, a proxy.
  void watch_for_welcome() {
    timer_.expires_after(limits::kHelloTimeout);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (error || self->is_welcomed_ || !self->socket_) return;
      self->broken();
    });
  }

  // Somebody listens and is no coordinator, or one that does not come to answer.
  void say_stranger(const std::string& how) {
    if (!trouble_since_) trouble_since_ = connected_at_;
    newest_trouble_ = how;
    if (probe_) return;
    probe_ = StoreProbe::start(loop_, endpoint_, [self = shared_from_this(), how](bool is_store) {
      self->probe_.reset();
      self->say_trouble(is_store ? kStoreMet : how);
    });
  }

  void say_trouble(const std::string& why) {
    auto now = std::chrono::steady_clock::now();
    if (!trouble_since_) trouble_since_ = now;
    newest_trouble_ = why;
    // At most one line a minute, and only once a short trouble has turned into a lasting one.
    bool is_due = !said_at_ || now - *said_at_ >= options_.say_waiting;
    bool is_lasting = now - *trouble_since_ >= limits::kHelloTimeout;
    if (!is_lasting || !is_due) return;
    said_at_ = now;
    auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - *trouble_since_).count();
    if (events_.on_trouble) {
      events_.on_trouble("can't reach the coordinator at " + to_string(endpoint_) + " for " +
                         std::to_string(waited) + " s: " + why);
    }
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
          self->input_.insert(self->input_.end(), self->chunk_.begin(),
                              self->chunk_.begin() + static_cast<ptrdiff_t>(size));
          if (self->take_frames() && self->socket_.get() == current) self->read();
        });
  }

  // False: the connection is no more.
  bool take_frames() {
    size_t taken = 0;
    tcp::socket* current = socket_.get();
    for (;;) {
      control::FrameView frame = control::next_frame(std::span(input_).subspan(taken));
      if (frame.state == control::FrameView::State::NeedMore) break;
      Result<control::CoordinatorMessage> message =
          frame.state == control::FrameView::State::Whole
              ? control::decode_coordinator(frame.body)
              : Result<control::CoordinatorMessage>(Error{
                    ErrorKind::Protocol, "what listens there does not speak cpprun's protocol"});
      if (!message) {
        if (is_welcomed_) say_trouble(message.error().text);
        has_said_nonsense_ = true;
        broken();
        return false;
      }
      taken += frame.consumed;
      is_welcomed_ = true;
      back_off_ = limits::kReconnectFirst;
      trouble_since_.reset();
      newest_trouble_.clear();
      if (events_.on_message) events_.on_message(*message);
      if (socket_.get() != current) return false;
    }
    input_.erase(input_.begin(), input_.begin() + static_cast<ptrdiff_t>(taken));
    return true;
  }

  void flush() {
    if (is_writing_ || pending_.empty() || !socket_) return;
    is_writing_ = true;
    writing_.swap(pending_);
    asio::async_write(*socket_, asio::buffer(writing_),
                      [self = shared_from_this(), current = socket_.get()](
                          error_code error, size_t) { self->on_written(error, current); });
  }

  void on_written(error_code error, const tcp::socket* on) {
    if (socket_.get() != on) return;
    is_writing_ = false;
    writing_.clear();
    if (error) {
      broken();
    } else if (!pending_.empty()) {
      flush();
    } else if (is_closing_) {
      shut();
    }
  }

  void broken() {
    bool is_stranger = socket_ && !is_welcomed_ && !options_.is_own && !is_closing_;
    if (is_stranger) {
      bool was_silent = std::chrono::steady_clock::now() - connected_at_ >= limits::kHelloTimeout;
      say_stranger(has_said_nonsense_ ? "what listens there does not speak cpprun's protocol"
                   : was_silent       ? "connected, but no coordinator answers"
                                      : "connected, but what listens there hangs up");
    }
    drop_socket(true);
    if (is_closing_) {
      shut();
      return;
    }
    if (events_.on_disconnected) events_.on_disconnected();
    if (!is_closing_) retry();
  }

  void shut() {
    drop_socket(is_reset_);
    if (auto on_gone = std::exchange(on_gone_, nullptr)) on_gone();
  }

  // FIN is a farewell, so in every other case the connection is reset (docs/protocol.md, R4).
  void drop_socket(bool is_reset) {
    if (!socket_) return;
    error_code ignored;
    if (is_reset) socket_->set_option(asio::socket_base::linger(true, 0), ignored);
    if (!is_reset) socket_->shutdown(tcp::socket::shutdown_send, ignored);
    socket_->close(ignored);
    socket_.reset();
    is_writing_ = false;
    pending_.clear();
    writing_.clear();
  }

  asio::io_context& loop_;
  const Endpoint endpoint_;
  const Options options_;
  Events events_;
  asio::steady_timer timer_;  // back-off, or the wait for the first answer
  std::shared_ptr<Attempt> attempt_;
  std::shared_ptr<StoreProbe> probe_;
  std::unique_ptr<tcp::socket> socket_;
  Duration back_off_ = limits::kReconnectFirst;

  std::array<uint8_t, 4096> chunk_{};
  std::vector<uint8_t> input_;
  std::vector<uint8_t> pending_;  // next to write
  std::vector<uint8_t> writing_;  // being written
  bool is_writing_ = false;
  bool is_welcomed_ = false;
  bool has_said_nonsense_ = false;
  bool is_closing_ = false;
  bool is_reset_ = false;
  std::function<void()> on_gone_;

  std::chrono::steady_clock::time_point connected_at_;
  std::optional<std::chrono::steady_clock::time_point> trouble_since_;
  std::optional<std::chrono::steady_clock::time_point> said_at_;
  std::string newest_trouble_;
};

ControlClient::ControlClient(asio::io_context& loop, Endpoint endpoint, Options options,
                             Events events)
    : impl_(std::make_shared<Impl>(loop, std::move(endpoint), options, std::move(events))) {
  impl_->connect();
}
ControlClient::~ControlClient() {
  impl_->abandon();
}
void ControlClient::send(const control::AgentMessage& message) {
  impl_->send(message);
}
void ControlClient::close(bool is_reset, std::function<void()> on_gone) {
  impl_->close(is_reset, std::move(on_gone));
}
void ControlClient::reconnect() {
  impl_->reconnect();
}
const std::string& ControlClient::trouble() const {
  return impl_->trouble();
}
std::string ControlClient::peer_address() const {
  return impl_->peer_address();
}

}  // namespace cpprun

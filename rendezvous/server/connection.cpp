#include "rendezvous/server/connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/limits/tls.hpp"
#include "common/machine/sockets.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Unsent bytes below this count for no budget: most connections have less, and they are sent soon.
constexpr size_t kChargedFrom = 64 * 1024;

// Nearly always there is one piece, and send() is cheaper than sendmsg().
ssize_t send_some(int fd, const Outbox& out) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  std::array<iovec, 16> parts;
  size_t count = out.gather(parts);
  if (count == 1) return ::send(fd, parts[0].iov_base, parts[0].iov_len, kFlags);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return ::sendmsg(fd, &message, kFlags);
}

}  // namespace

struct TcpConnection::Io {
  explicit Io(asio::io_context& loop) : socket(loop) {}
  asio::ip::tcp::socket socket;
};

std::shared_ptr<TcpConnection> TcpConnection::adopt(ConnectionHost& host, asio::io_context& loop,
                                                    SessionId id, int listener, int fd, Peer peer) {
  auto io = std::make_unique<Io>(loop);
  error_code error;
  // Asio uses the protocol's family only to open sockets, so v6 fits any descriptor.
  io->socket.assign(asio::ip::tcp::v6(), fd, error);
  if (error) return nullptr;
  return std::make_shared<TcpConnection>(host, id, listener, std::move(io), std::move(peer));
}

TcpConnection::TcpConnection(ConnectionHost& host, SessionId id, int listener,
                             std::unique_ptr<Io> io, Peer peer)
    : host_(host),
      id_(id),
      listener_(listener),
      io_(std::move(io)),
      peer_(std::move(peer)),
      in_(host.memory_budget()),
      out_(host.string_pool()),
      unsent_charge_(host.memory_budget()) {}

TcpConnection::~TcpConnection() = default;

std::string TcpConnection::local_address() const {
  if (state_ == State::Dead) return "";
  return peer_.is_in_process ? peer_.address : local_name(io_->socket.native_handle());
}

std::shared_ptr<const void> TcpConnection::input_owner(size_t& size) const {
  size = in_.capacity();
  return in_.owner();
}

// --- Connection, called by sessions

bool TcpConnection::is_above_high_watermark() {
  was_above_high_watermark_ = was_above_high_watermark_ || out_.size() > host_.outbox_limit();
  return was_above_high_watermark_;
}

void TcpConnection::mark() {
  if (is_dirty_ || state_ == State::Dead) return;
  is_dirty_ = true;
  host_.on_dirty(*this);
}

void TcpConnection::send(std::string_view bytes) {
  if (!is_open()) return;
  out_.tail().append(bytes);
  mark();
}

void TcpConnection::send_shared(const SharedBytes& bytes) {
  if (!is_open()) return;
  out_.add(bytes);
  mark();
}

void TcpConnection::close() {
  wants_close_ = true;
  mark();
}

void TcpConnection::reset() {
  wants_reset_ = true;
  mark();
}

// --- reading

void TcpConnection::read() {
  if (is_reading_) return;
  if (tls_) return read_encrypted();
  is_reading_ = true;
  std::span<uint8_t> space = in_.space(session_ ? session_->wants() : 1);
  if (space.empty()) {
    is_reading_ = false;
    host_.begin_batch();
    drop("no memory is left for its input" + described_input());
    host_.end_batch();
    return;
  }
  auto then = [self = shared_from_this()](error_code error, size_t size) {
    self->on_read(error == asio::error::eof, bool(error), size);
  };
  io_->socket.async_read_some(
      asio::buffer(space.data(), space.size()),
      asio::bind_allocator(HandlerAllocator<void>(read_memory_), std::move(then)));
}

void TcpConnection::on_read(bool is_end, bool is_error, size_t size) {
  is_reading_ = false;
  if (state_ == State::Dead) return;
  host_.begin_batch();
  if (is_end) {
    end_of_input();
  } else if (is_error) {
    abort(CloseKind::Reset);
  } else {
    has_received_ = true;
    in_.commit(size);
    if (is_open()) {
      process();
      if (is_incomplete()) note_incomplete();
    } else {
      in_.consume(size);
    }
  }
  host_.end_batch();
  if (state_ != State::Dead && !has_peer_ended_ && !was_above_high_watermark_)
    host_.schedule_read(*this);
}

// Waits without a buffer: an idle encrypted connection needs none of its own.
void TcpConnection::read_encrypted() {
  is_reading_ = true;
  auto then = [self = shared_from_this()](error_code) {
    self->is_reading_ = false;
    if (self->state_ != State::Dead) self->on_encrypted();
  };
  io_->socket.async_wait(asio::ip::tcp::socket::wait_read,
                         asio::bind_allocator(HandlerAllocator<void>(read_memory_), then));
}

void TcpConnection::on_encrypted() {
  std::array<uint8_t, limits::kTlsRecordBytes> piece;
  const ssize_t size =
      ::recv(io_->socket.native_handle(), piece.data(), piece.size(), MSG_DONTWAIT);
  const bool is_later = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  host_.begin_batch();
  if (size == 0) {
    end_of_input();
  } else if (size > 0) {
    take_encrypted(std::span(piece).first(static_cast<size_t>(size)));
  } else if (!is_later) {
    abort(CloseKind::Reset);
  }
  host_.end_batch();
  if (state_ != State::Dead && !has_peer_ended_) host_.schedule_read(*this);
}

void TcpConnection::take_encrypted(std::span<const uint8_t> bytes) {
  has_received_ = true;
  tls_->feed(bytes);
  for (;;) {
    std::span<uint8_t> space = in_.space(session_ ? session_->wants() : 1);
    if (space.empty()) return drop("no memory is left for its input" + described_input());
    const size_t size = tls_->read(space);
    if (size == 0) break;
    in_.commit(size);
    if (is_open()) {
      process();
    } else {
      in_.consume(size);
    }
    if (state_ == State::Dead) return;
  }
  if (is_incomplete()) note_incomplete();
  if (tls_->state() == TlsStream::State::Failed) return refuse_encrypted();
  // TLS answers some messages itself, and a peer need not read the answers.
  if (tls_->unsent() > host_.outbox_limit()) return drop_slow_consumer();
  mark();  // the handshake may have something to send
}

// The alert for the peer goes out before the FIN.
void TcpConnection::refuse_encrypted() {
  if (!is_open()) return;
  host_.peer_log().warning("refused the TLS connection from " + peer_.address + ": " + tls_->why());
  close();
}

void TcpConnection::resume_read() {
  if (state_ != State::Dead && !has_peer_ended_ && !was_above_high_watermark_) read();
}

void TcpConnection::process() {
  if (!session_) {
    bool needs_more = false;
    const bool was_encrypted = is_encrypted();
    session_ = host_.make_session(*this, in_.held(), needs_more);
    if (is_encrypted() && !was_encrypted) {
      const std::vector<uint8_t> first(in_.held().begin(), in_.held().end());
      in_.consume(first.size());
      return take_encrypted(first);
    }
    if (needs_more) return;
    if (!session_) return close();
  }
  if (in_.held().size() < session_->wants()) return;
  // A session that runs out of memory costs its own connection and nothing else.
  const auto is_isolated = [this] { return session_ && session_->is_isolated(); };
  try {
    return hand_over_input();
  } catch (const std::bad_alloc&) {
    if (!is_isolated()) throw;
  } catch (const std::length_error&) {
    if (!is_isolated()) throw;
  }
  drop("the server is out of memory" + described_input());
}

void TcpConnection::hand_over_input() {
  size_t used = session_->on_bytes(in_.held());
  if (used > 0) has_completed_handshake_ = true;
  in_.consume(is_open() ? used : in_.held().size());  // the rest is not read
}

void TcpConnection::note_incomplete() {
  last_input_ = std::chrono::steady_clock::now();
  if (std::exchange(is_timed_, true)) return;
  host_.on_incomplete(*this);
}

void TcpConnection::drop_stalled() { drop("its command does not continue" + described_input()); }

// " (SET of key 'name', 1234 bytes)".
std::string TcpConnection::described_input() const {
  const std::string what = session_ ? session_->describe(in_.held()) : "";
  return what.empty() ? "" : " (" + what + ")";
}

// Queued bytes are still sent: the peer may have closed only its write side. A FIN is evidence that
// the peer's process has ended; the end of a socket pair is none, because that process is our own.
void TcpConnection::end_of_input() {
  has_peer_ended_ = true;
  notify_closed(peer_.is_in_process ? CloseKind::Reset : CloseKind::Fin);
  wants_close_ = true;
  mark();
}

// --- writing and ending

void TcpConnection::settle() {
  is_dirty_ = false;
  if (state_ == State::Dead) return;
  if (wants_reset_) return abort_with_reset();
  if (!is_waiting_writable_) flush();
  if (state_ == State::Dead) return;
  // One reply may exceed the limit, but nothing may be queued on top of it. A session that stopped
  // for this reason continues when the peer has read.
  bool is_over = out_.size() > host_.outbox_limit();
  bool has_grown = backlog_ > host_.outbox_limit() && out_.size() > backlog_;
  if (is_over && has_grown) return drop_slow_consumer();
  backlog_ = out_.size();
  if (backlog_ >= kChargedFrom || unsent_charge_.bytes() != 0) charge_unsent();
  if (state_ == State::Dead) return;
  if (was_above_high_watermark_ && !is_over && is_open()) resume();
  if (wants_close_) finish();
}

// The peer has read its replies, so the session continues with the input that waited.
void TcpConnection::resume() {
  was_above_high_watermark_ = false;
  process();
  if (state_ == State::Dead) return;
  mark();
  if (!was_above_high_watermark_) read();
}

// Sends everything, then FIN; dies on the peer's FIN.
void TcpConnection::finish() {
  notify_closed(CloseKind::ByUs);
  if (state_ == State::Open) {
    state_ = State::Closing;
    host_.on_lingering(*this);
  }
  if (!out_.empty()) return;
  if (tls_ && !is_fin_sent_) {
    tls_->end_output();
    if (!is_waiting_writable_) flush();
    if (state_ == State::Dead || tls_->has_unsent()) return;
  }
  if (has_peer_ended_) return die();
  if (is_fin_sent_) return;
  is_fin_sent_ = true;
  error_code error;
  io_->socket.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (error) die();
}

void TcpConnection::drop_slow_consumer() {
  drop("it does not read its replies, and " + text::count(out_.size(), "byte") + " wait for it");
}

void TcpConnection::drop(const std::string& why) {
  if (state_ == State::Dead) return;
  host_.peer_log().warning("dropped the connection from " + peer_.address + ": " + why);
  abort_with_reset();
}

void TcpConnection::charge_unsent() {
  const size_t copied = out_.copied() >= kChargedFrom ? out_.copied() : 0;
  const MemoryBudget& budget = *host_.memory_budget();
  const size_t before = unsent_charge_.bytes();
  if (copied > before && !budget.has_room(copied - before)) {
    return drop("no memory is left for its replies, of which it has not read " +
                text::count(out_.size(), "byte"));
  }
  unsent_charge_.set(copied);
}

bool TcpConnection::may_copy(size_t size) {
  if (!is_open()) return false;
  const size_t uncharged = out_.copied() - std::min(out_.copied(), unsent_charge_.bytes());
  if (host_.memory_budget()->has_room(uncharged + size)) return true;
  host_.peer_log().warning("dropped the connection from " + peer_.address +
                           ": no memory is left for a reply of " + text::count(size, "byte"));
  reset();
  return false;
}

void TcpConnection::abort_with_reset() {
  error_code ignored;
  io_->socket.set_option(asio::socket_base::linger(true, 0), ignored);
  abort(CloseKind::ByUs);
}

void TcpConnection::flush() {
  if (tls_) {
    const TlsLink::Sent sent = tls_->flush(io_->socket.native_handle(), out_);
    if (sent == TlsLink::Sent::Blocked) wait_writable();
    if (sent == TlsLink::Sent::Broken) abort(CloseKind::Reset);
    return;
  }
  while (!out_.empty()) {
    ssize_t sent = send_some(io_->socket.native_handle(), out_);
    if (sent >= 0) {
      out_.sent(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return wait_writable();
    } else if (errno != EINTR) {
      return abort(CloseKind::Reset);
    }
  }
}

void TcpConnection::wait_writable() {
  is_waiting_writable_ = true;
  io_->socket.async_wait(asio::ip::tcp::socket::wait_write,
                         [self = shared_from_this()](error_code error) {
                           self->is_waiting_writable_ = false;
                           if (error || self->state_ == State::Dead) return;
                           self->host_.begin_batch();
                           self->mark();
                           self->host_.end_batch();
                         });
}

void TcpConnection::abort(CloseKind kind) {
  if (state_ == State::Dead) return;
  notify_closed(kind);
  die();
}

void TcpConnection::notify_closed(CloseKind kind) {
  if (!session_) return;
  std::unique_ptr<Session> session = std::move(session_);
  session->on_closed(kind);
}

void TcpConnection::die() {
  if (state_ == State::Dead) return;
  state_ = State::Dead;
  out_.clear();
  unsent_charge_.set(0);
  error_code ignored;
  io_->socket.close(ignored);
  host_.on_dead(*this);
}

}  // namespace cpprun

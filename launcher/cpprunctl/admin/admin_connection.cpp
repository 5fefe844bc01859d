#include "launcher/cpprunctl/admin/admin_connection.hpp"

#include <poll.h>

#include <chrono>
#include <iterator>
#include <span>

#include "common/limits/server.hpp"
#include "common/version.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun::ctl {
namespace {

std::string framed(const control::AgentMessage& message) {
  std::string frame;
  control::append_frame(frame, control::encode(message));
  return frame;
}

// The TLS handshake with the coordinator.
Status secure(BlockingSocket& socket, const JobTls& tls) {
  const Status ready = socket.secure(tls.connect(TlsRole::Coordinator));
  if (ready || !socket.is_ended_in_handshake()) return ready;
  return Error{ready.error().kind,
               ready.error().text + ": it may have no secret, or be an older cpprun"};
}

}  // namespace

Result<std::unique_ptr<AdminConnection>> AdminConnection::open(const Endpoint& endpoint,
                                                               const JobTls* tls, Duration limit) {
  Result<std::unique_ptr<BlockingSocket>> socket = dial(endpoint, limit);
  if (!socket) return socket.error();
  std::unique_ptr<AdminConnection> made(new AdminConnection(endpoint, std::move(*socket)));
  if (Status ok = made->greet(tls); !ok) return ok.error();
  return made;
}

Status AdminConnection::greet(const JobTls* tls) {
  if (tls != nullptr) {
    if (Status ready = secure(*socket_, *tls); !ready) return named(ready.error());
  }
  std::string first(std::begin(control::kMagic), std::end(control::kMagic));
  first += framed(control::AdminHello{control::kProtocolVersion, version()});
  if (Status sent = socket_->send(first); !sent) return named(sent.error());
  auto challenge = next();
  if (!challenge) return challenge.error();
  const auto* given = std::get_if<control::Challenge>(&*challenge);
  if (given == nullptr) return not_expected();
  nonce_ = given->nonce;
  return {};
}

Status AdminConnection::send(const control::AgentMessage& message) {
  Status sent = socket_->send(framed(message));
  return sent ? sent : Status(named(sent.error()));
}

Result<control::CoordinatorMessage> AdminConnection::next() {
  constexpr size_t kLength = 4;
  Result<std::string> bytes = socket_->receive(kLength);
  if (!bytes) return named(bytes.error());
  if (bytes->size() < kLength) return not_expected();
  const auto length = control::frame_length(*bytes, limits::kControlFrameBytes);
  if (!length) return not_expected();
  Result<std::string> body = socket_->receive(*length);
  if (!body) return named(body.error());
  const auto* data = reinterpret_cast<const uint8_t*>(body->data());
  auto message = control::decode_coordinator(std::span(data, body->size()));
  if (!message) return not_expected();
  if (const auto* refused = std::get_if<control::Refused>(&*message)) {
    return named(Error{ErrorKind::Refused, refused->why});
  }
  return message;
}

bool AdminConnection::has_input(Duration wait) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  pollfd one{socket_->fd(), POLLIN, 0};
  return ::poll(&one, 1, static_cast<int>(left)) > 0;
}

Error AdminConnection::not_expected() const {
  return named(Error{ErrorKind::Protocol, "it is not the rendezvous port of a cpprun job"});
}

Error AdminConnection::named(const Error& error) const {
  return Error{error.kind, to_string(endpoint_) + ": " + error.text};
}

}  // namespace cpprun::ctl

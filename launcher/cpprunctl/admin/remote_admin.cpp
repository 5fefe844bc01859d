#include "launcher/cpprunctl/admin/remote_admin.hpp"

#include <span>

#include "common/limits/admin.hpp"
#include "common/limits/server.hpp"
#include "common/proof/hmac.hpp"
#include "launcher/cpprunctl/blocking_socket.hpp"
#include "rendezvous/protocol/admin/admin_commands.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun::ctl {
namespace {

std::string framed(const control::AgentMessage& message) {
  std::string frame;
  control::append_frame(frame, control::encode(message));
  return frame;
}

Error no_coordinator() {
  return Error{ErrorKind::Protocol, "it is not the rendezvous port of a cpprun job"};
}

// Receives the next message; a refusal becomes an error.
Result<control::CoordinatorMessage> next_message(BlockingSocket& socket) {
  constexpr size_t kLength = 4;
  Result<std::string> bytes = socket.receive(kLength);
  if (!bytes) return bytes.error();
  if (bytes->size() < kLength) return no_coordinator();
  const auto length = control::frame_length(*bytes, limits::kControlFrameBytes);
  if (!length) return no_coordinator();
  Result<std::string> body = socket.receive(*length);
  if (!body) return body.error();
  const auto* data = reinterpret_cast<const uint8_t*>(body->data());
  auto message = control::decode_coordinator(std::span(data, body->size()));
  if (!message) return no_coordinator();
  if (const auto* refused = std::get_if<control::Refused>(&*message)) {
    return Error{ErrorKind::Refused, refused->why};
  }
  return message;
}

Result<std::string> converse(BlockingSocket& socket, const std::string& token,
                             control::AdminRequest command) {
  std::string first(std::begin(control::kMagic), std::end(control::kMagic));
  first += framed(control::AdminHello{control::kProtocolVersion, CPPRUN_VERSION});
  if (Status sent = socket.send(first); !sent) return sent.error();
  auto challenge = next_message(socket);
  if (!challenge) return challenge.error();
  const auto* nonce = std::get_if<control::Challenge>(&*challenge);
  if (nonce == nullptr) return no_coordinator();
  command.mac = hmac_of(token, control::admin_mac_input(nonce->nonce, command));
  if (Status sent = socket.send(framed(command)); !sent) return sent.error();
  auto heard = next_message(socket);
  if (!heard) return heard.error();
  const auto* answer = std::get_if<control::AdminReply>(&*heard);
  if (answer == nullptr) return no_coordinator();
  if (!answer->is_done) return Error{ErrorKind::Refused, answer->text};
  return answer->text;
}

}  // namespace

Result<std::string> send_admin_command(const Endpoint& endpoint, const std::string& token,
                                       control::AdminRequest command) {
  Result<std::unique_ptr<BlockingSocket>> socket = dial(endpoint, limits::kAdminReplyTimeout);
  if (!socket) return socket.error();
  Result<std::string> answer = converse(**socket, token, std::move(command));
  if (answer) return answer;
  return Error{answer.error().kind, to_string(endpoint) + ": " + answer.error().text};
}

}  // namespace cpprun::ctl

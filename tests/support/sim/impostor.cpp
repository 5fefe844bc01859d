#include "tests/support/sim/impostor.hpp"

#include <utility>

#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun::sim {

Impostor::Impostor(SimContext& context, HostId to, int port, control::Hello hello,
                   std::vector<control::AgentMessage> messages)
    : context_(context),
      hello_(std::move(hello)),
      messages_(std::move(messages)),
      program_(context.network.add(kImpostorHost, *this)) {
  context_.network.dial(program_, to, port);
}

void Impostor::on_dialled(ConnectionId connection, bool is_connected, const std::string&) {
  if (!is_connected) return;
  Bytes bytes(std::begin(control::kMagic), std::end(control::kMagic));
  control::append_frame(bytes, control::encode(control::AgentMessage(hello_)));
  for (const control::AgentMessage& each : messages_) {
    control::append_frame(bytes, control::encode(each));
  }
  context_.network.send(program_, connection, std::move(bytes));
}

void Impostor::on_ended(ConnectionId connection, Ending) {
  context_.network.close(program_, connection, Ending::Reset);
}

}  // namespace cpprun::sim

// ControlSession: the framing of one agent's connection to the coordinator: magic, then frames.
// Decodes messages and calls the service's on_message() and on_closed(). Private to ControlService.
// Thread: the loop's. Owner: its connection.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "common/log/log.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/server/connection.hpp"
#include "rendezvous/server/session.hpp"

namespace cpprun {

template <class Service>
class ControlSession final : public Session {
 public:
  ControlSession(Service& service, Connection& connection)
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

  void on_closed(CloseKind kind) override { service_.on_closed(id_, kind); }

 private:
  static bool is_greeting(const control::AgentMessage& message) {
    return std::holds_alternative<control::Hello>(message) ||
           std::holds_alternative<control::AdminHello>(message);
  }

  // A bad peer loses its own connection and nothing else.
  size_t broken(const std::string& why, size_t all) {
    log::info("closing the control connection from " + connection_.peer_address() + ": " + why);
    connection_.reset();
    return all;
  }

  Service& service_;
  Connection& connection_;
  const SessionId id_;
  bool has_completed_handshake_ = false;
  bool is_settled_ = false;
};

}  // namespace cpprun

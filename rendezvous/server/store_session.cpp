#include "rendezvous/server/store_session.hpp"

#include <algorithm>

#include "common/limits/store.hpp"
#include "common/text.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"

namespace cpprun {
namespace {

using tcpstore::Command;
using tcpstore::Op;
using tcpstore::Parsed;

std::string_view first_key(const Command& command) {
  return command.items.size() > 0 ? *command.items.begin() : command.key;
}

// Keys that only torchrun's agents use (c10d and static rendezvous).
bool is_agents_key(std::string_view key) {
  return key.starts_with("/torch.rendezvous.") ||
         key.find("/torchelastic/") != std::string_view::npos;
}

}  // namespace

StoreSession::StoreSession(Connection& connection, std::shared_ptr<Store> store, ReplySink& sink,
                           CommandCounts& counts, tcpstore::Dialect dialect,
                           const tcpstore::Limits& limits, PeerLog& peer_log)
    : connection_(connection),
      store_(std::move(store)),
      sink_(sink),
      counts_(counts),
      parser_(dialect, limits),
      peer_log_(peer_log) {}

size_t StoreSession::on_bytes(std::span<const uint8_t> bytes) {
  size_t owned = 0;
  std::shared_ptr<const void> owner = connection_.input_owner(owned);
  size_t used = 0;
  Command command;
  wants_ = 1;
  while (used < bytes.size() && connection_.is_open() && !connection_.is_above_high_watermark()) {
    Parsed parsed = parser_.parse(bytes.subspan(used), command);
    if (parsed.kind == Parsed::Kind::NeedMore) {
      wants_ = parsed.size;
      return used;
    }
    if (parsed.kind == Parsed::Kind::Broken) {
      peer_log_.info("store client " + connection_.peer_address() + " dropped: " + parsed.why);
      connection_.close();
      return bytes.size();
    }
    ++counts_[static_cast<size_t>(command.op)];
    store_->apply(connection_.id(), command, sink_, owner, owned);
    command.items = {};
    used += parsed.size;
  }
  return used;
}

std::string StoreSession::describe(std::span<const uint8_t> bytes) const {
  const std::string_view key = parser_.first_key(bytes);
  const std::string name = text::one_line(key, limits::kStoreKeyBytesLogged);
  const std::string size = text::count(std::max(wants_, bytes.size()), "byte");
  return "a command of " + size + " or more" + (name.empty() ? "" : " with key '" + name + "'");
}

void StoreSession::on_closed(CloseKind) { store_->session_closed(connection_.id(), sink_); }

RejectingSession::RejectingSession(Connection& connection, tcpstore::Dialect dialect,
                                   const tcpstore::Limits& limits, PeerLog& peer_log,
                                   bool logs_reason)
    : connection_(connection),
      parser_(dialect, limits),
      peer_log_(peer_log),
      logs_reason_(logs_reason) {}

size_t RejectingSession::on_bytes(std::span<const uint8_t> bytes) {
  size_t used = 0;
  Command command;
  wants_ = 1;
  while (used < bytes.size()) {
    Parsed parsed = parser_.parse(bytes.subspan(used), command);
    if (parsed.kind == Parsed::Kind::NeedMore) {
      wants_ = parsed.size;
      return used;
    }
    used += parsed.size;
    if (parsed.kind == Parsed::Kind::Whole && command.op == Op::Validate) continue;
    if (parsed.kind == Parsed::Kind::Whole && command.op == Op::Ping) {
      std::string reply;
      tcpstore::reply_nonce(reply, static_cast<uint32_t>(command.number));
      connection_.send(reply);
      continue;
    }
    std::string peer = connection_.peer_address();
    if (!logs_reason_) {
      connection_.close();
      return bytes.size();
    }
    if (parsed.kind == Parsed::Kind::Whole && is_agents_key(first_key(command))) {
      peer_log_.warning("a torchrun agent has connected from " + peer +
                        "; it cannot take part in a cpprun job: start that node with cpprun too");
    } else {
      peer_log_.warning("a TCPStore client has connected from " + peer +
                        ", but no store is served at this port");
    }
    connection_.close();
    return bytes.size();
  }
  return used;
}

}  // namespace cpprun

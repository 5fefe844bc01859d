#include "tests/support/sim/store_server.hpp"

#include <algorithm>

#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"

namespace cpprun::sim {

using tcpstore::Op;

StoreServer::StoreServer(Network& network, HostId host, std::vector<std::string>& broken)
    : network_(network), broken_(broken), program_(network.add(host, *this)) {
  network_.listen(program_, kJobPort);
}

int64_t StoreServer::overdue() const {
  return std::count_if(waits_.begin(), waits_.end(), [&](const auto& entry) {
    const std::set<std::string>& missing = entry.second.missing;
    return std::all_of(missing.begin(), missing.end(),
                       [&](const std::string& key) { return present_.contains(key); });
  });
}

void StoreServer::on_accepted(ConnectionId connection) { lines_[connection]; }

void StoreServer::on_bytes(ConnectionId connection, std::span<const uint8_t> bytes) {
  auto it = lines_.find(connection);
  if (it == lines_.end()) return;
  Line& line = it->second;
  line.input.insert(line.input.end(), bytes.begin(), bytes.end());
  size_t used = 0;
  for (;;) {
    tcpstore::Command command;
    tcpstore::Parsed parsed = line.parser.parse(std::span(line.input).subspan(used), command);
    if (parsed.kind == tcpstore::Parsed::Kind::Broken) broken("a command can't be read");
    if (parsed.kind != tcpstore::Parsed::Kind::Whole) break;
    apply(connection, command);
    used += parsed.size;
  }
  line.input.erase(line.input.begin(), line.input.begin() + static_cast<ptrdiff_t>(used));
}

void StoreServer::on_ended(ConnectionId connection, Ending) {
  if (lines_.erase(connection) == 0) return;
  network_.close(program_, connection, Ending::Fin);
  waits_.erase(connection);
  store_.session_closed(SessionId(connection), *this);
  compare("a session's end");
}

void StoreServer::apply(ConnectionId connection, const tcpstore::Command& command) {
  foresee(connection, command);
  is_check_ = command.op == Op::Check;
  store_.apply(SessionId(connection), command, *this);
  compare(tcpstore::name(command.op));
}

// The effects that the command must have, computed from scratch.
void StoreServer::foresee(ConnectionId connection, const tcpstore::Command& command) {
  switch (command.op) {
    case Op::Set:
    case Op::Add: foresee_key(std::string(command.key)); return;
    case Op::DeleteKey: present_.erase(std::string(command.key)); return;
    case Op::CancelWait: waits_.erase(connection); return;
    case Op::Wait: {
      Wait wait;
      wait.number = ++waits_begun_;
      for (std::string_view key : command.items) {
        if (!present_.contains(std::string(key))) wait.missing.emplace(key);
      }
      waits_.erase(connection);
      if (wait.missing.empty()) {
        expected_ready_.push_back(connection);
      } else {
        waits_[connection] = std::move(wait);
      }
      return;
    }
    default: return;
  }
}

void StoreServer::foresee_key(const std::string& key) {
  present_.insert(key);
  std::vector<std::pair<int64_t, ConnectionId>> done;
  for (auto& [connection, wait] : waits_) {
    if (wait.missing.erase(key) > 0 && wait.missing.empty()) {
      done.emplace_back(wait.number, connection);
    }
  }
  std::sort(done.begin(), done.end());
  for (const auto& [number, connection] : done) {
    expected_ready_.push_back(connection);
    waits_.erase(connection);
  }
}

void StoreServer::compare(const char* after) {
  if (ready_ != expected_ready_) {
    broken("after " + std::string(after) + " " + std::to_string(ready_.size()) +
           " waits were answered, or in another order; " + std::to_string(expected_ready_.size()) +
           " had all their keys");
  }
  if (store_.waits() != waits_.size()) {
    broken("after " + std::string(after) + " the store holds " + std::to_string(store_.waits()) +
           " waits, there are " + std::to_string(waits_.size()));
  }
  ready_.clear();
  expected_ready_.clear();
}

void StoreServer::send(SessionId to, const std::string& bytes) {
  if (!lines_.contains(to.value)) broken("a reply to a session that is gone");
  network_.send(program_, to.value, Bytes(bytes.begin(), bytes.end()));
}

void StoreServer::reply_byte(SessionId to, uint8_t value) {
  if (value == tcpstore::kReady && !is_check_) ready_.push_back(to.value);  // CHECK replies 0 too
  std::string bytes;
  tcpstore::reply_byte(bytes, value);
  send(to, bytes);
}
void StoreServer::reply_number(SessionId to, int64_t value) {
  std::string bytes;
  tcpstore::reply_number(bytes, value);
  send(to, bytes);
}
void StoreServer::reply_nonce(SessionId to, uint32_t value) {
  std::string bytes;
  tcpstore::reply_nonce(bytes, value);
  send(to, bytes);
}
void StoreServer::reply_bytes(SessionId to, std::string_view value) {
  std::string bytes;
  tcpstore::reply_bytes(bytes, value);
  send(to, bytes);
}
void StoreServer::reply_value(SessionId to, const Value& value) { reply_bytes(to, value.view()); }
void StoreServer::refuse(SessionId, std::string_view why) {
  broken("refused: " + std::string(why));
}

}  // namespace cpprun::sim

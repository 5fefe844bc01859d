// Server::Impl, second part: the store's replies into connections, and the pages served over HTTP.
#include "rendezvous/protocol/tcpstore_encode.hpp"
#include "rendezvous/server/server_impl.hpp"

namespace cpprun {

TcpConnection* Server::Impl::find(SessionId id) {
  if (latest_ != nullptr && latest_->id() == id) return latest_;
  auto found = table_.find(id.value);
  if (found == table_.end()) return nullptr;
  latest_ = found->second.get();
  return latest_;
}

void Server::Impl::reply_byte(SessionId to, uint8_t value) {
  TcpConnection* connection = find(to);
  if (connection == nullptr || !connection->is_open()) return;
  tcpstore::reply_byte(connection->reply(), value);
  connection->mark();
}

void Server::Impl::reply_number(SessionId to, int64_t value) {
  TcpConnection* connection = find(to);
  if (connection == nullptr || !connection->is_open()) return;
  tcpstore::reply_number(connection->reply(), value);
  connection->mark();
}

void Server::Impl::reply_nonce(SessionId to, uint32_t value) {
  TcpConnection* connection = find(to);
  if (connection == nullptr || !connection->is_open()) return;
  tcpstore::reply_nonce(connection->reply(), value);
  connection->mark();
}

void Server::Impl::reply_bytes(SessionId to, std::string_view value) {
  TcpConnection* connection = find(to);
  if (connection == nullptr || !connection->is_open()) return;
  tcpstore::reply_bytes(connection->reply(), value);
  connection->mark();
}

void Server::Impl::reply_value(SessionId to, const Value& value) {
  const SharedBytes* shared = value.shared();
  if (shared == nullptr) return reply_bytes(to, value.view());
  TcpConnection* connection = find(to);
  if (connection == nullptr || !connection->is_open()) return;
  tcpstore::reply_number(connection->reply(), static_cast<int64_t>(shared->bytes.size()));
  connection->send_shared(*shared);
}

void Server::Impl::refuse(SessionId to, std::string_view) {
  if (TcpConnection* connection = find(to)) connection->close();
}

HttpAnswer Server::Impl::page(std::string_view path) const {
  if (path == "/healthz") return {200, "text/plain; charset=utf-8", "ok\n"};
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", metrics()};
  if (path == "/status") {
    std::string body = hooks_.status_json ? hooks_.status_json() : "{}\n";
    return {200, "application/json", std::move(body)};
  }
  return {};
}

std::string Server::Impl::metrics() const {
  std::string out;
  auto add = [&out](const char* name, const char* kind, const char* help, uint64_t value) {
    out += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + kind + "\n" +
           name + " " + std::to_string(value) + "\n";
  };
  add("cpprun_connections", "gauge", "Open connections.", table_.size());
  add("cpprun_connections_total", "counter", "Connections accepted.", accepted_);
  add("cpprun_connections_dropped_total", "counter",
      "Connections closed because they said nothing in time or came when there was no room.",
      dropped_);
  out +=
      "# HELP cpprun_store_commands_total TCPStore commands carried out.\n"
      "# TYPE cpprun_store_commands_total counter\n";
  for (size_t i = 0; i < counts_.size(); ++i) {
    out += std::string("cpprun_store_commands_total{command=\"") +
           tcpstore::name(static_cast<tcpstore::Op>(i)) + "\"} " + std::to_string(counts_[i]) +
           "\n";
  }
  return out;
}

}  // namespace cpprun

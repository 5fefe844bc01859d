// Server::Impl, second part: the store's replies into connections.
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

}  // namespace cpprun

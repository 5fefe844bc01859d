// Server::Impl, second part: the store's replies into connections, and the pages served over HTTP.
#include "rendezvous/core/prometheus.hpp"
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
  prometheus::Text text;
  const auto one = [&text](const char* name, const char* kind, const char* help, uint64_t value) {
    text.family(name, kind, help);
    text.series({}, static_cast<int64_t>(value));
  };
  text.family("cpprun_build_info", "gauge", "Always 1; the version is its label.");
  text.series({{"version", CPPRUN_VERSION}}, 1);
  one("cpprun_connections", "gauge", "Open connections.", table_.size());
  one("cpprun_connections_total", "counter", "Connections accepted.", accepted_);
  one("cpprun_connections_dropped_total", "counter",
      "Connections closed because they said nothing in time or came when there was no room.",
      dropped_);
  size_t keys = 0;
  size_t waits = 0;
  for (const std::shared_ptr<Store>& store : stores()) {
    keys += store->keys();
    waits += store->waits();
  }
  one("cpprun_store_keys", "gauge", "Keys in the stores that are served, of all jobs.", keys);
  one("cpprun_store_waits", "gauge", "Clients that wait for keys.", waits);
  text.family("cpprun_store_commands_total", "counter", "TCPStore commands carried out.");
  for (size_t i = 0; i < counts_.size(); ++i) {
    text.series({{"command", tcpstore::name(static_cast<tcpstore::Op>(i))}},
                static_cast<int64_t>(counts_[i]));
  }
  return text.take() + (hooks_.metrics ? hooks_.metrics() : "");
}

std::vector<std::shared_ptr<Store>> Server::Impl::stores() const {
  std::vector<std::shared_ptr<Store>> all;
  if (hooks_.store_for_main_port) all.push_back(hooks_.store_for_main_port());
  for (const auto& [number, door] : doors_) all.push_back(door.store);
  std::erase(all, nullptr);
  return all;
}

}  // namespace cpprun

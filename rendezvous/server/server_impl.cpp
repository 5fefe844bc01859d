#include "rendezvous/server/server_impl.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "common/limits/dashboard.hpp"
#include "common/limits/store.hpp"
#include "common/limits/tls.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/identity.hpp"
#include "common/machine/own_addresses.hpp"
#include "common/machine/sockets.hpp"
#include "common/machine/usable_memory.hpp"
#include "common/thread/loop_mark.hpp"
#include "common/version.hpp"
#include "rendezvous/observe/prometheus.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"
#include "rendezvous/server/dashboard/dashboard_page.hpp"
#include "rendezvous/server/descriptor_limits.hpp"
#include "rendezvous/server/one_shot_timer.hpp"

namespace cpprun {
namespace {

namespace asio = boost::asio;

constexpr const char* kPlainRefused =
    "the coordinator accepts TLS alone; start every agent of the job with its --secret-file (or "
    "CPPRUN_SECRET_FILE, CPPRUN_SECRET), or with its --tls-cert, --tls-key and --tls-ca; the same "
    "holds for cpprunctl";

}  // namespace

size_t default_memory_bytes() {
  const Unblocking limits_of_memory("the kernel has meminfo and the limits of cgroups in memory");
  return usable_memory() / limits::kStoreMemoryDivisor;
}

Server::Impl::Impl(asio::io_context& loop, const ServerOptions& options, ServerHooks hooks)
    : loop_(loop),
      options_(options),
      hooks_(std::move(hooks)),
      host_check_(search_domains()),
      memory_budget_(std::make_shared<MemoryBudget>(options.memory_bytes)),
      alarm_(std::make_unique<OneShotTimer>(loop)),
      stream_alarm_(std::make_unique<OneShotTimer>(loop)) {
  size_t largest = options_.store.key_bytes + options_.store.value_bytes + 64;
  options_.store.command_bytes = std::max(options_.store.command_bytes, largest);
  const std::string own = own_host_name();
  for (const std::string& name : {own, own.substr(0, own.find('.'))}) host_check_.allow(name);
  for (const std::string& name : options_.host_names) host_check_.allow(name);
}

Server::Impl::~Impl() = default;

// --- ports

Result<uint16_t> Server::Impl::listen(const Endpoint& endpoint, std::shared_ptr<Store> store) {
  // On the loop the address is numeric.
  const Unblocking tables("the kernel's own tables, which name the holder of a taken port");
  Result<std::vector<int>> opened = open_listeners(endpoint);
  if (!opened) return opened.error();
  host_check_.allow(endpoint.host);
  int number = next_listen_port_++;
  ListenPort& listen_port = listen_ports_[number];
  listen_port.port = local_port(opened->front());
  listen_port.store = std::move(store);
  for (int fd : *opened) {
    auto on_fd = [this, number](int accepted, const sockaddr_storage& peer) {
      on_accept(number, accepted, peer);
    };
    listen_port.listeners.push_back(std::make_shared<Listener>(loop_, fd, on_fd));
    listen_port.listeners.back()->start();
  }
  return listen_port.port;
}

void Server::Impl::close_store_listener(uint16_t port) {
  begin_batch();
  for (auto listen_port = listen_ports_.begin(); listen_port != listen_ports_.end();) {
    if (listen_port->second.port != port || !listen_port->second.store) {
      ++listen_port;
      continue;
    }
    for (std::shared_ptr<Listener>& listener : listen_port->second.listeners) listener->close();
    abort_connections(listen_port->first);
    listen_port = listen_ports_.erase(listen_port);
  }
  end_batch();
}

void Server::Impl::abort_connections(std::optional<int> listen_port) {
  std::vector<std::shared_ptr<TcpConnection>> found;
  for (const auto& [id, connection] : table_) {
    if (!listen_port || connection->listener() == *listen_port) found.push_back(connection);
  }
  std::ranges::sort(found, {}, [](const auto& connection) { return connection->id(); });
  for (const auto& connection : found) connection->abort(CloseKind::ByUs);
}

void Server::Impl::stop() {
  if (is_stopped_) return;
  begin_batch();
  is_stopped_ = true;
  for (auto& [number, listen_port] : listen_ports_) {
    for (std::shared_ptr<Listener>& listener : listen_port.listeners) listener->close();
  }
  abort_connections(std::nullopt);
  alarm_->close();
  stream_alarm_->close();
  end_batch();
  listen_ports_.clear();
}

void Server::Impl::on_accept(int listen_port, int fd, const sockaddr_storage& peer) {
  const size_t most = connections_within_limit(options_.connections);
  if (table_.size() >= most) {
    ::close(fd);
    ++dropped_;
    if (most < options_.connections) {
      log_out_of_descriptors();
    } else {
      peer_log_.error("more than " + std::to_string(most) +
                      " connections: new ones are turned away");
    }
    return;
  }
  add_connection(listen_port, fd, {numeric_name(reinterpret_cast<const sockaddr&>(peer))});
}

void Server::Impl::adopt(UniqueFd end, const std::string& address) {
  const auto is_main = [](const auto& each) { return each.second.store == nullptr; };
  const auto main_port = std::find_if(listen_ports_.begin(), listen_ports_.end(), is_main);
  if (is_stopped_ || main_port == listen_ports_.end()) return;
  add_connection(main_port->first, end.release(), {address, true});
}

void Server::Impl::add_connection(int listen_port, int fd, TcpConnection::Peer peer) {
  SessionId id(next_id_++);
  auto connection = TcpConnection::adopt(*this, loop_, id, listen_port, fd, std::move(peer));
  if (!connection) {
    ::close(fd);
    ++dropped_;
    return;
  }
  ++accepted_;
  table_.emplace(id.value, connection);
  watch(id, options_.silent_peer);
  connection->start();
}

// --- sessions

std::unique_ptr<Session> Server::Impl::make_session(TcpConnection& connection,
                                                    std::span<const uint8_t> bytes,
                                                    bool& needs_more) {
  Protocol protocol = sniff(bytes);
  needs_more = protocol == Protocol::NeedMore;
  if (needs_more) return nullptr;
  bool is_main = listen_ports_[connection.listener()].store == nullptr;
  if (connection.is_encrypted() && protocol != Protocol::Control) protocol = Protocol::Unknown;
  switch (protocol) {
    case Protocol::ModernStore: return make_store_session(connection, tcpstore::Dialect::Modern);
    case Protocol::LegacyStore:
      connection.is_legacy = true;
      ++legacy_peers_[connection.peer_address()].clients;
      return make_store_session(connection, tcpstore::Dialect::Legacy);
    case Protocol::Control:
      if (is_main) return make_control_session(connection);
      break;
    case Protocol::Tls:
      if (!is_main) break;
      needs_more = begin_tls(connection);
      return nullptr;
    case Protocol::Http:
      if (is_main) return std::make_unique<HttpSession>(connection, *this);
      break;
    case Protocol::NeedMore:
    case Protocol::Unknown: break;
  }
  peer_log_.info(connection.peer_address() + " speaks none of our protocols; closed");
  return nullptr;
}

std::unique_ptr<Session> Server::Impl::make_store_session(TcpConnection& connection,
                                                          tcpstore::Dialect dialect) {
  const ListenPort& listen_port = listen_ports_[connection.listener()];
  std::shared_ptr<Store> store = listen_port.store;
  const uint16_t port = store ? listen_port.port : uint16_t{0};
  if (!store && hooks_.store_for_main_port) store = hooks_.store_for_main_port();
  const bool is_admitted = !hooks_.may_use_store || hooks_.may_use_store(connection, port);
  if (!store || !is_admitted)
    return std::make_unique<RejectingSession>(connection, dialect, options_.store, peer_log_,
                                              is_admitted);
  return std::make_unique<StoreSession>(connection, std::move(store), *this, counts_, dialect,
                                        options_.store, peer_log_);
}

std::unique_ptr<Session> Server::Impl::make_control_session(TcpConnection& connection) {
  if (options_.tls && !connection.is_encrypted()) {
    refuse_plain(connection);
    return nullptr;
  }
  std::unique_ptr<Session> session;
  if (hooks_.make_control_session) session = hooks_.make_control_session(connection);
  if (!session) {
    peer_log_.warning("an agent has connected from " + connection.peer_address() +
                      ", but no job is coordinated here");
  }
  return session;
}

bool Server::Impl::begin_tls(TcpConnection& connection) {
  const std::string& peer = connection.peer_address();
  if (!options_.tls) {
    peer_log_.warning("refused the connection from " + peer +
                      ": it speaks TLS, and this coordinator has neither a secret nor "
                      "certificates; give all agents the same --secret-file");
    return false;
  }
  if (static_cast<size_t>(handshakes_.use_count()) > options_.tls_handshakes) {
    ++dropped_;
    peer_log_.warning("more than " + std::to_string(options_.tls_handshakes) +
                      " TLS handshakes at a time: new ones are turned away");
    return false;
  }
  try {
    connection.encrypt(
        std::make_unique<TlsLink>(options_.tls->accept(TlsRole::Coordinator), handshakes_));
  } catch (const std::bad_alloc&) {
    peer_log_.warning("no memory is left for a TLS connection from " + peer);
    return false;
  }
  return true;
}

// The peer is no member, so it gets the reason in the clear, and nothing else.
void Server::Impl::refuse_plain(TcpConnection& connection) {
  peer_log_.warning("refused the connection from " + connection.peer_address() +
                    ": it speaks without TLS, and this job has a secret or certificates");
  std::string frame;
  control::append_frame(frame, control::encode(control::Refused{kPlainRefused}));
  connection.send(frame);
}

// --- batches

void Server::Impl::end_batch() {
  if (batch_depth_ == 1) settle();
  --batch_depth_;
}

// The end of a session may queue replies to others, so dirty_ may grow during the loop.
void Server::Impl::settle() {
  for (size_t i = 0; i < dirty_.size(); ++i) dirty_[i]->settle();
  dirty_.clear();
  closed_connections_.clear();
  forget_identified_connections();
}

void Server::Impl::schedule_read(TcpConnection& connection) {
  later_.push_back(connection.shared_from_this());
  if (later_.size() > 1) return;
  asio::post(loop_, [self = shared_from_this()] {
    self->later_now_.swap(self->later_);
    for (std::shared_ptr<TcpConnection>& each : self->later_now_) each->resume_read();
    self->later_now_.clear();
  });
}

void Server::Impl::on_dirty(TcpConnection& connection) {
  dirty_.push_back(&connection);
  if (batch_depth_ > 0 || is_settling_posted_) return;
  is_settling_posted_ = true;
  asio::post(loop_, [self = shared_from_this()] {
    self->is_settling_posted_ = false;
    self->begin_batch();
    self->end_batch();
  });
}

void Server::Impl::on_dead(TcpConnection& connection) {
  auto found = table_.find(connection.id().value);
  if (found == table_.end()) return;
  if (latest_ == &connection) latest_ = nullptr;
  if (connection.is_legacy || connection.is_companion) forget_legacy(connection);
  closed_connections_.push_back(std::move(found->second));
  table_.erase(found);
}

// --- silent peers

void Server::Impl::watch(SessionId id, Duration limit) {
  const auto added = watched_.emplace(Clock::now() + limit, id);
  if (added == watched_.begin() && alarm_->is_set()) alarm_->clear();
  arm();
}

void Server::Impl::on_incomplete(TcpConnection& connection) {
  watch(connection.id(), options_.stalled_command);
}

void Server::Impl::arm() {
  if (alarm_->is_set() || watched_.empty() || is_stopped_) return;
  // Not shared_from_this(): this object owns the timer and closes it in stop().
  alarm_->set(watched_.begin()->first - Clock::now(), [this] { on_time(); });
}

// Clears the timer once no connection is watched, so that an idle server sleeps.
void Server::Impl::forget_identified_connections() {
  auto is_done = [this](SessionId id) {
    TcpConnection* connection = find(id);
    return connection == nullptr || connection->forget_if_idle();
  };
  while (!watched_.empty() && is_done(watched_.begin()->second)) watched_.erase(watched_.begin());
  if (watched_.empty() && alarm_->is_set()) alarm_->clear();
}

void Server::Impl::on_time() {
  begin_batch();
  Clock::time_point now = Clock::now();
  while (!watched_.empty() && watched_.begin()->first <= now) {
    TcpConnection* connection = find(watched_.begin()->second);
    watched_.erase(watched_.begin());
    if (connection != nullptr) on_expired(*connection, now);
  }
  end_batch();
  arm();
}

void Server::Impl::on_expired(TcpConnection& connection, Clock::time_point now) {
  if (connection.is_lingering()) return connection.abort(CloseKind::ByUs);
  if (!connection.has_completed_handshake()) {
    if (keep_as_companion(connection)) return;
    ++dropped_;
    peer_log_.info(connection.peer_address() + " has sent no whole command in time; closed");
    return connection.abort(CloseKind::ByUs);
  }
  if (connection.forget_if_idle()) return;
  const Duration left = connection.last_input() + options_.stalled_command - now;
  if (left > Duration{}) return watch(connection.id(), left);
  ++dropped_;
  connection.drop_stalled();
}

// torch 2.0 opens a second connection that stays silent. The server keeps one such connection per
// legacy client of the same host.
bool Server::Impl::keep_as_companion(TcpConnection& silent) {
  const auto peer = legacy_peers_.find(silent.peer_address());
  if (!silent.is_silent() || peer == legacy_peers_.end()) return false;
  if (peer->second.companions >= peer->second.clients) return false;
  ++peer->second.companions;
  silent.is_companion = true;
  return true;
}

void Server::Impl::forget_legacy(const TcpConnection& connection) {
  const auto peer = legacy_peers_.find(connection.peer_address());
  CPPRUN_CHECK(peer != legacy_peers_.end());
  if (connection.is_legacy) --peer->second.clients;
  if (connection.is_companion) --peer->second.companions;
  if (peer->second.clients + peer->second.companions == 0) legacy_peers_.erase(peer);
}

// ---------------------------------------------------------------- replies

TcpConnection* Server::Impl::find(SessionId id) {
  if (latest_ != nullptr && latest_->id() == id) return latest_;
  auto found = table_.find(id.value);
  if (found == table_.end()) return nullptr;
  latest_ = found->second.get();
  return latest_;
}

template <class T>
void Server::Impl::reply(SessionId to, void (*encode)(std::string&, T), T value) {
  TcpConnection* connection = find(to);
  if (connection == nullptr || !connection->is_open()) return;
  encode(connection->reply(), value);
  connection->mark();
}

void Server::Impl::reply_byte(SessionId to, uint8_t value) {
  reply(to, &tcpstore::reply_byte, value);
}
void Server::Impl::reply_number(SessionId to, int64_t value) {
  reply(to, &tcpstore::reply_number, value);
}
void Server::Impl::reply_nonce(SessionId to, uint32_t value) {
  reply(to, &tcpstore::reply_nonce, value);
}
void Server::Impl::reply_bytes(SessionId to, std::string_view value) {
  if (value.size() >= Value::kSharedFrom) {
    TcpConnection* connection = find(to);
    if (connection == nullptr || !connection->may_copy(value.size())) return;
  }
  reply(to, &tcpstore::reply_bytes, value);
}
void Server::Impl::reply_value(SessionId to, const Value& value) {
  const SharedBytes* shared = value.shared();
  if (shared == nullptr) return reply_bytes(to, value.view());
  TcpConnection* connection = find(to);
  if (connection == nullptr || !connection->is_open()) return;
  tcpstore::reply_number(connection->reply(), static_cast<int64_t>(shared->bytes.size()));
  connection->send_shared(*shared);
}

void Server::Impl::refuse(SessionId to, std::string_view why) {
  TcpConnection* connection = find(to);
  if (connection == nullptr) return;
  peer_log_.warning("store client " + connection->peer_address() + " dropped: " + std::string(why));
  connection->close();
}

// ---------------------------------------------------------------- HTTP

namespace {

// The page is self-contained, so even markup injected by a hostile name could load nothing and
// reach no other host.
constexpr const char* kPagePolicy =
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors "
    "'none'\r\nReferrer-Policy: no-referrer\r\n";

}  // namespace

HttpResponse Server::Impl::page(const HttpRequest& request) {
  const std::string_view path = request.path;
  if (path == "/") {
    return {200, "text/html; charset=utf-8", std::string(dashboard_page()), kPagePolicy};
  }
  if (path == "/events" && hooks_.topics) return {200, "text/event-stream", "", "", true};
  if (path == "/steps" && hooks_.steps) return {200, "application/json", hooks_.steps()};
  if ((path == "/log" || path == "/log/nonce") && hooks_.log_page) {
    return hooks_.log_page(path, request.query, request.peer);
  }
  if (path == "/healthz") return {200, "text/plain; charset=utf-8", "ok\n"};
  if (path == "/metrics") {
    const prometheus::Format format = prometheus::format_for(request.accept);
    return {200, prometheus::media_type(format), metrics(format), "Vary: Accept\r\n"};
  }
  if (path == "/status") {
    std::string body = hooks_.status_json ? hooks_.status_json() : "{}\n";
    return {200, "application/json", std::move(body)};
  }
  return {};
}

// ---------------------------------------------------------------- events

bool Server::Impl::stream_began(Connection& connection, const std::string& topic) {
  if (!streams_.add(connection, topic)) return false;
  if (stream_alarm_->is_set()) stream_alarm_->clear();
  stream_alarm_->set(Duration{}, [this] { tick_streams(); });  // serve a new reader at once
  return true;
}

void Server::Impl::stream_ended(SessionId id) {
  streams_.remove(id);
  if (!streams_.empty()) return;
  if (stream_alarm_->is_set()) stream_alarm_->clear();
  if (hooks_.unwatched) hooks_.unwatched();
}

void Server::Impl::tick_streams() {
  if (is_stopped_ || streams_.empty()) return;
  begin_batch();
  streams_.tick(boot_now().nanoseconds() / 1'000'000, hooks_.topics(streams_.private_ones()));
  end_batch();
  if (is_stopped_ || streams_.empty() || stream_alarm_->is_set()) return;
  stream_alarm_->set(limits::kStreamTick, [this] { tick_streams(); });
}

// ---------------------------------------------------------------- metrics

std::string Server::Impl::metrics(prometheus::Format format) const {
  prometheus::Text text(format);
  const auto one = [&text](const char* name, const char* kind, const char* help, uint64_t value) {
    text.family(name, kind, help);
    text.series({}, static_cast<int64_t>(value));
  };
  text.family("cpprun_build_info", "info", "Always 1; the version is its label.");
  text.series({{"version", version()}}, 1);
  one("cpprun_connections", "gauge", "Open connections.", table_.size());
  one("cpprun_connections_total", "counter", "Connections accepted.", accepted_);
  one("cpprun_connections_dropped_total", "counter",
      "Connections closed because they sent nothing in time or came when there was no room.",
      dropped_);
  size_t keys = 0;
  size_t waits = 0;
  for (const std::shared_ptr<Store>& store : stores()) {
    keys += store->keys();
    waits += store->waits();
  }
  one("cpprun_event_readers", "gauge", "Who reads /events: open dashboards.", streams_.size());
  one("cpprun_store_keys", "gauge", "Keys in the stores that are served, of all jobs.", keys);
  one("cpprun_store_waits", "gauge", "Clients that wait for keys.", waits);
  text.family("cpprun_store_commands_total", "counter", "TCPStore commands carried out.");
  for (size_t i = 0; i < counts_.size(); ++i) {
    text.series({{"command", tcpstore::name(static_cast<tcpstore::Op>(i))}},
                static_cast<int64_t>(counts_[i]));
  }
  const char* end = format == prometheus::Format::OpenMetrics ? "# EOF\n" : "";
  return text.take() + (hooks_.metrics ? hooks_.metrics(format) : "") + end;
}

std::vector<std::shared_ptr<Store>> Server::Impl::stores() const {
  std::vector<std::shared_ptr<Store>> all;
  if (hooks_.store_for_main_port) all.push_back(hooks_.store_for_main_port());
  for (const auto& [number, listen_port] : listen_ports_) all.push_back(listen_port.store);
  std::erase(all, nullptr);
  return all;
}

Server::Server(boost::asio::io_context& loop, ServerOptions options, ServerHooks hooks)
    : impl_(std::make_shared<Impl>(loop, options, std::move(hooks))) {}

Server::~Server() { stop(); }

Result<uint16_t> Server::listen(const Endpoint& endpoint) {
  return impl_->listen(endpoint, nullptr);
}

Result<uint16_t> Server::open_store_listener(const std::string& address, uint16_t port,
                                             std::shared_ptr<Store> store) {
  CPPRUN_CHECK(store != nullptr);
  return impl_->listen({address, port}, std::move(store));
}

void Server::close_store_listener(uint16_t port) { impl_->close_store_listener(port); }
void Server::adopt(UniqueFd end, const std::string& address) {
  impl_->adopt(std::move(end), address);
}
void Server::stop() { impl_->stop(); }
size_t Server::connections() const { return impl_->connections(); }
std::shared_ptr<Store> Server::make_store() const { return impl_->make_store(); }

}  // namespace cpprun

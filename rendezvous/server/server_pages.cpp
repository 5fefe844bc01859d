// Server::Impl, third part: what it serves over HTTP.
#include "common/limits/dashboard.hpp"
#include "rendezvous/core/prometheus.hpp"
#include "rendezvous/server/alarm.hpp"
#include "rendezvous/server/clock.hpp"
#include "rendezvous/server/dashboard_page.hpp"
#include "rendezvous/server/server_impl.hpp"

namespace cpprun {
namespace {

// The page holds all that it needs. Whatever text of a hostile name might become, it could load
// nothing and reach nobody.
constexpr const char* kPagePolicy =
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors "
    "'none'\r\nReferrer-Policy: no-referrer\r\n";

}  // namespace

HttpAnswer Server::Impl::page(std::string_view path, std::string_view query,
                              const std::string& peer) const {
  if (path == "/") {
    return {200, "text/html; charset=utf-8", std::string(dashboard_page()), kPagePolicy};
  }
  if (path == "/events" && hooks_.topics) return {200, "text/event-stream", "", "", true};
  if (path == "/steps" && hooks_.steps) return {200, "application/json", hooks_.steps()};
  if ((path == "/log" || path == "/log/nonce") && hooks_.log_page) {
    return hooks_.log_page(path, query, peer);
  }
  if (path == "/healthz") return {200, "text/plain; charset=utf-8", "ok\n"};
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", metrics()};
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
  stream_alarm_->set(Duration{}, [this] { tick_streams(); });  // a newcomer need not wait
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
  wake_up_begins();
  streams_.tick(server_time().nanoseconds() / 1'000'000, hooks_.topics(streams_.private_ones()));
  wake_up_ends();
  if (is_stopped_ || streams_.empty() || stream_alarm_->is_set()) return;
  stream_alarm_->set(limits::kStreamTick, [this] { tick_streams(); });
}

// ---------------------------------------------------------------- metrics

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
  one("cpprun_event_readers", "gauge", "Who reads /events: open dashboards.", streams_.size());
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

#include "rendezvous/client/etcd/rpc_call.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "common/limits/election.hpp"
#include "rendezvous/client/etcd/tls_transport.hpp"

namespace cpprun::etcd {

using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kUnauthenticated = 401;
constexpr int kServersFault = 500;
// etcd's error if users or roles changed after the token was issued.
constexpr const char* kOldToken = "revision of auth store is old";

}  // namespace

void EtcdSession::rotate_endpoint(size_t member) {
  if (member != at) return;
  at = (at + 1) % options.endpoints.size();
  for (const std::shared_ptr<Transport>& transport : idle) transport->close();
  idle.clear();
}

RpcCall::RpcCall(boost::asio::io_context& loop, std::shared_ptr<EtcdSession> session,
                 GatewayRequest request, Duration limit, Done done)
    : loop_(loop),
      session_(std::move(session)),
      request_(std::move(request)),
      ends_at_(steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(limit)),
      done_(std::move(done)),
      timer_(loop) {}

void RpcCall::start() {
  boost::asio::post(loop_, [self = shared_from_this()] {
    if (!self->done_) return;
    self->member_ = self->session_->at;
    self->try_member();
  });
}

void RpcCall::cancel() {
  done_ = nullptr;
  timer_.cancel();
  if (connector_) std::exchange(connector_, nullptr)->cancel();
  if (handshake_) std::exchange(handshake_, nullptr)->cancel();
  if (exchange_) std::exchange(exchange_, nullptr)->cancel();
  if (transport_) std::exchange(transport_, nullptr)->close();
}

std::string RpcCall::member() const { return to_string(session_->options.endpoints[member_]); }

// ---------------------------------------------------------------- connection to a member

void RpcCall::wait_until(steady_clock::time_point end) {
  timer_.expires_at(end);
  timer_.async_wait([self = shared_from_this(), end](error_code error) {
    const bool is_current = self->timer_.expiry() == end;
    if (!error && is_current && self->done_) self->on_time();
  });
}

void RpcCall::try_member() {
  const bool are_others_left = tried_ + 1 < session_->options.endpoints.size();
  const auto soon = steady_clock::now() + limits::kEtcdConnectTimeout;
  wait_until(are_others_left ? std::min(ends_at_, soon) : ends_at_);
  std::vector<std::shared_ptr<Transport>>& idle = session_->idle;
  while (member_ == session_->at && !idle.empty()) {
    std::shared_ptr<Transport> kept = std::move(idle.back());
    idle.pop_back();
    if (!kept->is_stale()) return use(std::move(kept));
    kept->close();
  }
  connector_ = Connector::start(loop_, session_->options.endpoints[member_],
                                [self = shared_from_this()](Connector::Outcome outcome) {
                                  self->on_connected(std::move(outcome));
                                });
}

void RpcCall::on_connected(Connector::Outcome outcome) {
  connector_.reset();
  if (!done_) return;
  if (!outcome.socket) return try_next_member(outcome.why);
  const std::shared_ptr<const TlsContext>& tls = session_->options.tls;
  if (!tls) return use(plain_transport(std::move(outcome.socket)));
  handshake_ = start_tls_transport(
      tls, std::move(outcome.socket), session_->options.endpoints[member_].host,
      [self = shared_from_this()](std::shared_ptr<Transport> transport, const std::string& why) {
        self->handshake_.reset();
        if (!self->done_) return;
        transport ? self->use(std::move(transport)) : self->try_next_member(why);
      });
}

void RpcCall::use(std::shared_ptr<Transport> transport) {
  transport_ = std::move(transport);
  session_->own_address = transport_->own_address();
  if (!session_->options.user.empty() && session_->token.empty()) {
    log_in();
  } else {
    ask();
  }
}

// The request was not sent, so the next member may be tried.
void RpcCall::try_next_member(const std::string& why) {
  if (transport_) std::exchange(transport_, nullptr)->close();
  why_ += (why_.empty() ? "" : "; ") + member() + ": " + why;
  session_->rotate_endpoint(member_);
  if (++tried_ >= session_->options.endpoints.size() || steady_clock::now() >= ends_at_) {
    return finish(Error{ErrorKind::Network, why_});
  }
  member_ = (member_ + 1) % session_->options.endpoints.size();
  try_member();
}

void RpcCall::on_time() {
  if (connector_) std::exchange(connector_, nullptr)->cancel();
  if (handshake_) std::exchange(handshake_, nullptr)->cancel();
  if (exchange_) std::exchange(exchange_, nullptr)->cancel();
  if (!was_asked_) return try_next_member("no answer in time");
  session_->rotate_endpoint(member_);
  finish(Error{ErrorKind::Timeout, member() + " does not answer in time"});
}

// ---------------------------------------------------------------- login and request

void RpcCall::log_in() {
  if (session_->login) {
    keep(true);
    return finish(Error{ErrorKind::Network, member() + ": another request logs in; try again"});
  }
  wait_until(ends_at_);
  const GatewayRequest login = login_request(session_->options.user, session_->options.password);
  auto limit = std::make_shared<boost::asio::steady_timer>(loop_, limits::kEtcdLoginTimeout);
  std::shared_ptr<Transport> transport = std::exchange(transport_, nullptr);
  const auto on_outcome = [session = session_, limit, transport,
                           call = weak_from_this()](const HttpExchange::Outcome& outcome) {
    limit->cancel();
    session->login.reset();
    const Result<std::string> token = parse_token(outcome.body);
    if (outcome.status == kOk && token) session->token = *token;
    const std::shared_ptr<RpcCall> self = call.lock();
    if (self && self->done_) return self->on_token(outcome, transport);
    transport->close();
  };
  session_->login = HttpExchange::start(transport, post_request(member(), login, ""), on_outcome);
  limit->async_wait([session = session_, limit, member = member_, call = weak_from_this(),
                     login = std::weak_ptr(session_->login)](error_code error) {
    if (error || !session->login || session->login != login.lock()) return;
    std::exchange(session->login, nullptr)->cancel();
    const std::shared_ptr<RpcCall> self = call.lock();
    if (self && self->done_) return self->try_next_member("logging in takes too long");
    session->rotate_endpoint(member);
  });
}

void RpcCall::on_token(const HttpExchange::Outcome& outcome, std::shared_ptr<Transport> transport) {
  if (!outcome.why.empty()) return try_next_member(outcome.why);
  transport_ = std::move(transport);
  if (outcome.status >= kServersFault) return try_next_member(refusal_in(outcome.body));
  if (outcome.status != kOk) {
    return finish(Error{ErrorKind::Refused, member() + " does not take the user '" +
                                                session_->options.user +
                                                "': " + refusal_in(outcome.body)});
  }
  Result<std::string> token = parse_token(outcome.body);
  if (!token) return finish(token.error());
  if (outcome.keeps_transport) return ask();
  transport_.reset();
  try_member();
}

void RpcCall::ask() {
  was_asked_ = true;
  wait_until(ends_at_);
  exchange_ = HttpExchange::start(
      transport_, post_request(member(), request_, session_->token),
      [self = shared_from_this()](HttpExchange::Outcome outcome) { self->on_answer(outcome); });
}

void RpcCall::on_answer(HttpExchange::Outcome outcome) {
  exchange_.reset();
  if (!outcome.why.empty()) {
    session_->rotate_endpoint(member_);
    return finish(Error{ErrorKind::Network, member() + ": " + outcome.why});
  }
  keep(outcome.keeps_transport);
  if (outcome.status == kOk) return finish(std::move(outcome.body));
  const std::string refusal = refusal_in(outcome.body);
  const bool is_token_old =
      outcome.status == kUnauthenticated ||
      (outcome.status == kBadRequest && refusal.find(kOldToken) != refusal.npos);
  if (is_token_old && !session_->options.user.empty() && !std::exchange(has_renewed_, true)) {
    return renew_token();
  }
  const bool is_servers_fault = outcome.status >= kServersFault;
  if (is_servers_fault) session_->rotate_endpoint(member_);
  finish(Error{
      is_servers_fault ? ErrorKind::Network : ErrorKind::Refused,
      member() + ": " + (refusal.empty() ? "HTTP " + std::to_string(outcome.status) : refusal)});
}

// etcd did not execute the request, so it may be repeated.
void RpcCall::renew_token() {
  session_->token.clear();
  was_asked_ = false;
  try_member();
}

void RpcCall::keep(bool is_usable) {
  std::shared_ptr<Transport> transport = std::exchange(transport_, nullptr);
  std::vector<std::shared_ptr<Transport>>& idle = session_->idle;
  if (is_usable && member_ == session_->at && idle.size() < limits::kEtcdIdleConnections) {
    idle.push_back(std::move(transport));
  } else {
    transport->close();
  }
}

void RpcCall::finish(Result<std::string> result) {
  Done done = std::exchange(done_, nullptr);
  cancel();
  if (done) done(std::move(result));
}

}  // namespace cpprun::etcd

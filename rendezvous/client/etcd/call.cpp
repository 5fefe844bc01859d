#include "rendezvous/client/etcd/call.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "common/limits/etcd.hpp"
#include "rendezvous/client/etcd/tls.hpp"

namespace cpprun::etcd {

using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kUnauthenticated = 401;
constexpr int kServersFault = 500;
// Somebody has changed users or roles since the token was given.
constexpr const char* kOldToken = "revision of auth store is old";

}  // namespace

void Lines::leave(size_t member) {
  if (member != at) return;
  at = (at + 1) % options.endpoints.size();
  for (const std::shared_ptr<Wire>& wire : idle) wire->close();
  idle.clear();
}

Call::Call(boost::asio::io_context& loop, std::shared_ptr<Lines> lines, const Request& request,
           Duration limit, Done done)
    : loop_(loop),
      lines_(std::move(lines)),
      path_(path_of(request)),
      body_(body_of(request)),
      ends_at_(steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(limit)),
      done_(std::move(done)),
      timer_(loop) {}

void Call::start() {
  boost::asio::post(loop_, [self = shared_from_this()] {
    if (!self->done_) return;
    self->member_ = self->lines_->at;
    self->try_member();
  });
}

void Call::cancel() {
  done_ = nullptr;
  timer_.cancel();
  if (attempt_) std::exchange(attempt_, nullptr)->cancel();
  if (exchange_) std::exchange(exchange_, nullptr)->cancel();
  if (wire_) std::exchange(wire_, nullptr)->close();
}

std::string Call::member() const {
  return to_string(lines_->options.endpoints[member_]);
}

// ---------------------------------------------------------------- a member

void Call::wait_until(steady_clock::time_point end) {
  timer_.expires_at(end);
  timer_.async_wait([self = shared_from_this(), end](error_code error) {
    const bool is_current = self->timer_.expiry() == end;
    if (!error && is_current && self->done_) self->on_time();
  });
}

void Call::try_member() {
  const bool are_others_left = tried_ + 1 < lines_->options.endpoints.size();
  const auto soon = steady_clock::now() + limits::kEtcdConnect;
  wait_until(are_others_left ? std::min(ends_at_, soon) : ends_at_);
  std::vector<std::shared_ptr<Wire>>& idle = lines_->idle;
  while (member_ == lines_->at && !idle.empty()) {
    std::shared_ptr<Wire> kept = std::move(idle.back());
    idle.pop_back();
    if (!kept->is_stale()) return use(std::move(kept));
    kept->close();
  }
  attempt_ = Attempt::start(loop_, lines_->options.endpoints[member_],
                            [self = shared_from_this()](Attempt::Outcome outcome) {
                              self->on_connected(std::move(outcome));
                            });
}

void Call::on_connected(Attempt::Outcome outcome) {
  attempt_.reset();
  if (!done_) return;
  if (!outcome.socket) return pass_over(outcome.why);
  const std::shared_ptr<Tls>& tls = lines_->options.tls;
  if (!tls) return use(plain_wire(std::move(outcome.socket)));
  wire_ =
      tls->start(std::move(outcome.socket), lines_->options.endpoints[member_].host,
                 [self = shared_from_this()](std::shared_ptr<Wire> wire, const std::string& why) {
                   if (!self->done_) return;
                   wire ? self->use(std::move(wire)) : self->pass_over(why);
                 });
}

void Call::use(std::shared_ptr<Wire> wire) {
  wire_ = std::move(wire);
  lines_->own_address = wire_->own_address();
  if (!lines_->options.user.empty() && lines_->token.empty()) {
    log_in();
  } else {
    ask();
  }
}

// Nothing of the request has left: the next member may be asked.
void Call::pass_over(const std::string& why) {
  if (wire_) std::exchange(wire_, nullptr)->close();
  why_ += (why_.empty() ? "" : "; ") + member() + ": " + why;
  lines_->leave(member_);
  if (++tried_ >= lines_->options.endpoints.size() || steady_clock::now() >= ends_at_) {
    return tell(Error{ErrorKind::Network, why_});
  }
  member_ = (member_ + 1) % lines_->options.endpoints.size();
  try_member();
}

void Call::on_time() {
  if (attempt_) std::exchange(attempt_, nullptr)->cancel();
  if (exchange_) std::exchange(exchange_, nullptr)->cancel();
  if (!was_asked_) return pass_over("no answer in time");
  lines_->leave(member_);
  tell(Error{ErrorKind::Timeout, member() + " does not answer in time"});
}

// ---------------------------------------------------------------- what is said to it

void Call::log_in() {
  if (lines_->login) {
    keep(true);
    return tell(Error{ErrorKind::Network, member() + ": logging in takes its time"});
  }
  wait_until(ends_at_);
  const Authenticate who{lines_->options.user, lines_->options.password};
  auto limit = std::make_shared<boost::asio::steady_timer>(loop_, limits::kEtcdLogin);
  std::shared_ptr<Wire> wire = std::exchange(wire_, nullptr);
  const auto on_outcome = [lines = lines_, limit, wire,
                           call = weak_from_this()](const Exchange::Outcome& outcome) {
    limit->cancel();
    lines->login.reset();
    const Result<std::string> token = parse_token(outcome.body);
    if (outcome.status == kOk && token) lines->token = *token;
    const std::shared_ptr<Call> self = call.lock();
    if (self && self->done_) return self->on_token(outcome, wire);
    wire->close();
  };
  lines_->login =
      Exchange::start(wire, post_request(member(), path_of(who), "", body_of(who)), on_outcome);
  limit->async_wait([lines = lines_, limit, member = member_, call = weak_from_this(),
                     login = std::weak_ptr(lines_->login)](error_code error) {
    if (error || !lines->login || lines->login != login.lock()) return;
    std::exchange(lines->login, nullptr)->cancel();
    const std::shared_ptr<Call> self = call.lock();
    if (self && self->done_) return self->pass_over("logging in takes too long");
    lines->leave(member);
  });
}

void Call::on_token(const Exchange::Outcome& outcome, std::shared_ptr<Wire> wire) {
  if (!outcome.why.empty()) return pass_over(outcome.why);
  wire_ = std::move(wire);
  if (outcome.status >= kServersFault) return pass_over(refusal_in(outcome.body));
  if (outcome.status != kOk) {
    return tell(Error{ErrorKind::Refused, member() + " does not take the user '" +
                                              lines_->options.user +
                                              "': " + refusal_in(outcome.body)});
  }
  Result<std::string> token = parse_token(outcome.body);
  if (!token) return tell(token.error());
  if (outcome.keeps_wire) return ask();
  wire_.reset();
  try_member();
}

void Call::ask() {
  was_asked_ = true;
  wait_until(ends_at_);
  exchange_ = Exchange::start(
      wire_, post_request(member(), path_, lines_->token, body_),
      [self = shared_from_this()](Exchange::Outcome outcome) { self->on_answer(outcome); });
}

void Call::on_answer(Exchange::Outcome outcome) {
  exchange_.reset();
  if (!outcome.why.empty()) {
    lines_->leave(member_);
    return tell(Error{ErrorKind::Network, member() + ": " + outcome.why});
  }
  keep(outcome.keeps_wire);
  if (outcome.status == kOk) return tell(std::move(outcome.body));
  const std::string said = refusal_in(outcome.body);
  const bool is_token_old = outcome.status == kUnauthenticated ||
                            (outcome.status == kBadRequest && said.find(kOldToken) != said.npos);
  if (is_token_old && !lines_->options.user.empty() && !std::exchange(has_renewed_, true)) {
    return renew_token();
  }
  const bool is_servers_fault = outcome.status >= kServersFault;
  if (is_servers_fault) lines_->leave(member_);
  tell(Error{is_servers_fault ? ErrorKind::Network : ErrorKind::Refused,
             member() + ": " + (said.empty() ? "HTTP " + std::to_string(outcome.status) : said)});
}

// The request was not taken, so it may be made again.
void Call::renew_token() {
  lines_->token.clear();
  was_asked_ = false;
  try_member();
}

void Call::keep(bool is_usable) {
  std::shared_ptr<Wire> wire = std::exchange(wire_, nullptr);
  std::vector<std::shared_ptr<Wire>>& idle = lines_->idle;
  if (is_usable && member_ == lines_->at && idle.size() < limits::kEtcdIdle) {
    idle.push_back(std::move(wire));
  } else {
    wire->close();
  }
}

void Call::tell(Result<std::string> result) {
  Done done = std::exchange(done_, nullptr);
  cancel();
  if (done) done(std::move(result));
}

}  // namespace cpprun::etcd

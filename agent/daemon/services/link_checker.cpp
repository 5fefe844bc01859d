#include "agent/daemon/services/link_checker.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "common/endpoint.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/identity.hpp"
#include "rendezvous/protocol/transfer/link_protocol.hpp"
#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"

namespace cpprun {
namespace {

using snapshot_protocol::Answer;

constexpr size_t kBlockBytes = 256 << 10;
using Block = std::array<std::byte, kBlockBytes>;

Duration left(Instant until) { return std::max(Duration{}, until - boot_now()); }

// PeerSocket limits the time without progress; these limit the whole exchange too.
Status send_bytes(PeerSocket& peer, int64_t bytes, Instant until) {
  const auto block = std::make_unique<Block>();
  while (bytes > 0) {
    const auto size = static_cast<size_t>(std::min<int64_t>(bytes, kBlockBytes));
    const std::string_view some(reinterpret_cast<const char*>(block->data()), size);
    if (Status sent = peer.send(some, left(until)); !sent) return sent;
    bytes -= static_cast<int64_t>(size);
  }
  return {};
}

Status receive_bytes(PeerSocket& peer, int64_t bytes, Instant until) {
  const auto block = std::make_unique<Block>();
  while (bytes > 0) {
    const auto most = static_cast<size_t>(std::min<int64_t>(bytes, kBlockBytes));
    const Result<size_t> size = peer.receive({block->data(), most}, left(until));
    if (!size) return size.error();
    bytes -= static_cast<int64_t>(*size);
  }
  return {};
}

// Any program that reaches the port can end up here; it costs the program its connection.
void serve_link(PeerSocket& peer, const std::string& secret, const JobTls* tls) {
  const Instant until = boot_now() + limits::kLinkCheckTimeout;
  if (tls != nullptr && !peer.secure(tls->accept(TlsRole::Agent), left(until))) return;
  const Result<std::string> line = peer.receive_line(left(until));
  if (!line) return;
  const Result<link_protocol::Request> request = link_protocol::decode_request(*line);
  if (!request) return;
  const bool is_known = are_same_secret(request->secret, secret);
  const auto bytes = static_cast<uint64_t>(request->bytes);
  const Answer answer{is_known ? Answer::Kind::Bytes : Answer::Kind::Secret, is_known ? bytes : 0};
  if (!peer.send(encode(answer), left(until)) || !is_known) return;
  if (!receive_bytes(peer, request->bytes, until)) return;
  static_cast<void>(send_bytes(peer, request->bytes, until));
}

Status exchange(const control::CheckLink& check, const JobTls* tls, Instant until,
                const std::shared_ptr<const CancelToken>& cancel_token) {
  Result<PeerSocket> peer = PeerSocket::connect(
      check.peer.address, static_cast<uint16_t>(check.peer.port), left(until), cancel_token, tls);
  if (!peer) return peer.error();
  const Result<uint64_t> answer =
      peer->ask(encode(link_protocol::Request{check.secret, check.bytes}), left(until));
  if (!answer) return answer.error();
  if (Status sent = send_bytes(*peer, check.bytes, until); !sent) return sent;
  return receive_bytes(*peer, check.bytes, until);
}

}  // namespace

control::LinkResult check_link(const control::CheckLink& check, const JobTls* tls,
                               std::shared_ptr<const CancelToken> cancel_token) {
  const Instant begun = boot_now();
  const Status status = exchange(check, tls, begun + limits::kLinkCheckTimeout, cancel_token);
  control::LinkResult result{check.number, "", 2 * check.bytes, boot_now() - begun};
  if (!status) result.why = status.error().text;
  return result;
}

LinkChecker::LinkChecker(boost::asio::io_context& loop, const AgentConfig& config, Send send)
    : config_(config), send_(std::move(send)), background_(loop) {}

LinkChecker::~LinkChecker() {
  if (cancel_token_) cancel_token_->stop();
}

uint16_t LinkChecker::serve(const std::string& address) {
  if (config_.link_check_bytes == 0) return 0;
  if (listener_ && address == served_at_) return listener_->port();
  listener_.reset();
  if (secret_.empty()) secret_ = random_hex();
  const auto serve = [secret = secret_, tls = config_.rendezvous.job_tls](PeerSocket& peer) {
    try {
      serve_link(peer, secret, tls.get());
    } catch (const std::exception& error) {  // a lack of memory costs this peer only
      log::warning(std::string("a check of the link to another node failed: ") + error.what());
    }
  };
  Result<std::unique_ptr<PeerListener>> made =
      PeerListener::start(address, limits::kLinkCheckConnections, serve);
  if (!made) {
    log::warning("other nodes can't check their link to this one: " + made.error().text);
    return 0;
  }
  listener_ = std::move(*made);
  served_at_ = address;
  return listener_->port();
}

void LinkChecker::on_message(const control::CoordinatorMessage& message) {
  const auto* check = std::get_if<control::CheckLink>(&message);
  if (check == nullptr || config_.link_check_bytes == 0) return;
  if (!cancel_token_) cancel_token_ = std::make_shared<CancelToken>();
  background_.run_or([check = *check, tls = config_.rendezvous.job_tls,
                      token = cancel_token_] { return check_link(check, tls.get(), token); },
                     [this](const control::LinkResult& result) { send_(result); },
                     [number = check->number](const Status& failed) {
                       return control::LinkResult{number, failed.error().text};
                     });
}

}  // namespace cpprun

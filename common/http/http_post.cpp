#include "common/http/http_post.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "common/http/blocking_socket.hpp"
#include "common/limits/notice.hpp"
#include "common/text.hpp"
#include "common/tls/openssl.hpp"
#include "common/tls/tls_context.hpp"
#include "common/version.hpp"

namespace cpprun {
namespace {

Result<std::unique_ptr<TlsStream>> tls_for(const std::string& host) {
  auto made = TlsContext::make(TlsContext::Side::Client, TLS1_2_VERSION);
  if (!made) return made.error();
  if (Status ok = (*made)->trust({"", ""}); !ok) return ok.error();
  return TlsContext::connect(std::move(*made), host);
}

std::string request_for(const Url& url, const std::string& json, const HttpHeaders& headers) {
  std::string further;
  for (const auto& [name, value] : headers) further += name + ": " + value + "\r\n";
  return "POST " + url.target + " HTTP/1.1\r\nHost: " + url.host + "\r\nUser-Agent: cpprun/" +
         version() +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(json.size()) +
         "\r\nConnection: close\r\n" + further + "\r\n" + json;
}

// "HTTP/1.1 204 No Content"
std::optional<int> status_of(const std::string& reply) {
  const size_t space = reply.find(' ');
  if (!reply.starts_with("HTTP/1.") || space == std::string::npos) return std::nullopt;
  const auto status = text::parse_int(std::string_view(reply).substr(space + 1, 3));
  constexpr int64_t kLeast = 100;
  constexpr int64_t kMost = 599;
  if (!status || *status < kLeast || *status > kMost) return std::nullopt;
  return static_cast<int>(*status);
}

bool is_worth_a_retry(const Result<int>& status) {
  constexpr int kTooMany = 429;
  constexpr int kServerError = 500;
  return !status || *status == kTooMany || *status >= kServerError;
}

bool is_well(const Result<int>& status) { return status && *status >= 200 && *status < 300; }

}  // namespace

Result<int> http_post(const Url& url, const std::string& json, Duration limit,
                      const HttpHeaders& headers) {
  const auto failed = [&](const std::string& why) {
    return Error{ErrorKind::Network, to_string(url.endpoint) + ": " + why};
  };
  Result<std::unique_ptr<BlockingSocket>> dialled = dial(url.endpoint, limit);
  if (!dialled) return dialled.error();
  BlockingSocket& socket = **dialled;
  if (url.is_tls) {
    Result<std::unique_ptr<TlsStream>> tls = tls_for(url.endpoint.host);
    if (!tls) return failed(tls.error().text);
    if (Status ok = socket.secure(std::move(*tls)); !ok) return failed(ok.error().text);
  }
  if (Status ok = socket.send(request_for(url, json, headers)); !ok) return failed(ok.error().text);
  std::string reply;
  while (reply.find('\n') == std::string::npos && reply.size() < limits::kReplyBytes) {
    Result<std::string> some = socket.receive(1);
    if (!some) return failed(some.error().text);
    if (some->empty()) break;
    reply += *some;
  }
  const std::optional<int> status = status_of(reply);
  return status ? Result<int>(*status) : failed("this is no HTTP reply");
}

Status http_post_with_retries(const Url& url, const std::string& json, const HttpHeaders& headers) {
  Duration pause = limits::kNoticePause;
  for (int attempt = 1;; ++attempt, pause *= 2) {
    const Result<int> status = http_post(url, json, limits::kNoticeAttempt, headers);
    if (is_well(status)) return {};
    if (attempt < limits::kNoticeAttempts && is_worth_a_retry(status)) {
      std::this_thread::sleep_for(pause);
      continue;
    }
    if (!status) return status.error();
    return Error{ErrorKind::Network,
                 to_string(url.endpoint) + ": HTTP status " + std::to_string(*status)};
  }
}

}  // namespace cpprun

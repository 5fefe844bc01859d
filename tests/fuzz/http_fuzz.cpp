// Arbitrary bytes as HTTP requests to the rendezvous port: header, Host, query of the log page.
//
// First byte of the input: how the rest is cut. No crash is allowed; the server answers at most
// once, with one whole header and the announced body, and the same however the bytes are cut;
// nothing that the peer sent begins a header line of the answer.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/limits/server.hpp"
#include "rendezvous/observe/prometheus.hpp"
#include "rendezvous/server/dashboard/log_authenticator.hpp"
#include "rendezvous/server/host_check.hpp"
#include "rendezvous/server/http_session.hpp"

namespace cpprun {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

class FakeConnection : public Connection {
 public:
  SessionId id() const override { return SessionId(1); }
  bool is_open() const override { return !is_closed; }
  bool is_above_high_watermark() override { return false; }
  void send(std::string_view bytes) override {
    require(!is_closed);
    sent.append(bytes);
  }
  void send_shared(const SharedBytes& bytes) override { send(bytes.bytes); }
  size_t unsent() const override { return sent.size(); }
  void close() override { is_closed = true; }
  void reset() override { is_closed = true; }
  std::string peer_address() const override { return "10.0.0.1"; }
  std::string local_address() const override { return "10.0.0.2"; }
  std::shared_ptr<const void> input_owner(size_t&) const override { return nullptr; }

  std::string sent;
  bool is_closed = false;
};

class FakePages : public HttpPages {
 public:
  FakePages() : host_check({"cluster.example"}) {
    host_check.allow("node0");
    authenticator.open("a token of the job", [] { return "nonce"; });
    (void)authenticator.on_nonce(Instant{}, "10.0.0.1");
  }
  bool is_own_name(std::string_view host) const override { return host_check.allows(host); }
  HttpResponse page(const HttpRequest& request) override {
    const std::string_view path = request.path;
    const std::string_view query = request.query;
    (void)prometheus::format_for(request.accept);
    require(path.find_first_of("\r\n ") == std::string_view::npos);
    if (path == "/events") {
      const auto words = query_parameters(query);
      const auto topic = words.find("topic");
      return {200, "text/event-stream", "", "", true, topic == words.end() ? "" : topic->second};
    }
    const Result<JobRank> wanted = authenticator.on_query(Instant{}, request.peer, query);
    return wanted ? HttpResponse{200, "text/plain", "lines\n"}
                  : HttpResponse{403, "text/plain", wanted.error().text};
  }
  bool stream_began(Connection&, const std::string& topic) override {
    ++streams;
    return topic != "full";
  }
  void stream_ended(SessionId) override { --streams; }

  HostCheck host_check;
  LogAuthenticator authenticator;
  int streams = 0;
};

void check_answer(const std::string& sent) {
  static const std::set<std::string> kFields = {"Content-Type",  "Content-Length",
                                                "Allow",         "X-Content-Type-Options",
                                                "Cache-Control", "Connection"};
  require(sent.starts_with("HTTP/1.1 "));
  const size_t end = sent.find("\r\n\r\n");
  require(end != std::string::npos);
  std::map<std::string, std::string> fields;
  for (size_t at = sent.find("\r\n"); at < end; at = sent.find("\r\n", at + 2)) {
    const std::string line = sent.substr(at + 2, sent.find("\r\n", at + 2) - at - 2);
    const size_t colon = line.find(": ");
    require(colon != std::string::npos);
    require(kFields.contains(line.substr(0, colon)));
    require(fields.emplace(line.substr(0, colon), line.substr(colon + 2)).second);
  }
  const size_t body = sent.size() - end - 4;
  const auto length = fields.find("Content-Length");
  require(length == fields.end() || body == 0 || std::to_string(body) == length->second);
}

// `step` bytes more each time; 0: all at once. Returns what the server sent.
std::string answer_to(std::span<const uint8_t> bytes, size_t step) {
  FakeConnection connection;
  FakePages pages;
  HttpSession session(connection, pages);
  size_t start = 0;
  size_t end = step == 0 ? bytes.size() : 0;
  while (!connection.is_closed) {
    // An exact copy of the received bytes, so that the sanitizer reports a read beyond them.
    const std::vector<uint8_t> held(bytes.begin() + static_cast<ptrdiff_t>(start),
                                    bytes.begin() + static_cast<ptrdiff_t>(end));
    if (!held.empty() && held.size() >= session.wants()) {
      const size_t used = session.on_bytes(held);
      require(used <= held.size());
      require(used > 0 || session.wants() > held.size());
      start += used;
    }
    if (end == bytes.size()) break;
    end = std::min(bytes.size(), end + step);
  }
  session.on_closed(CloseKind::Fin);
  require(pages.streams <= 1);
  if (!connection.sent.empty()) check_answer(connection.sent);
  require(!connection.sent.empty() || bytes.size() < limits::kHttpHeaderBytes);
  return connection.sent;
}

}  // namespace
}  // namespace cpprun

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  const std::string whole = cpprun::answer_to(rest, 0);
  const std::string pieces = cpprun::answer_to(rest, static_cast<size_t>(data[0]) + 1);
  // A header that is too long is refused in pieces as well as at once.
  cpprun::require(whole == pieces);
  return 0;
}

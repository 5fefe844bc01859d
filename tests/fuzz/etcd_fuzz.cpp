// Arbitrary bytes as an HTTP reply, whole and in two pieces, and as an answer of etcd. Nothing may
// crash, hang or grow; both ways must give the same result.
#include <cstdlib>
#include <string_view>

#include "rendezvous/client/etcd/gateway.hpp"
#include "rendezvous/client/etcd/http_reply.hpp"

namespace {

using namespace cpprun;
using State = etcd::HttpReply::State;

void as_body(std::string_view text) {
  (void)etcd::response_of(election::Read{"l", "f"}, "", std::string(text));
  (void)etcd::response_of(election::Grant{}, "", std::string(text));
  (void)etcd::parse_token(text);
  (void)etcd::refusal_in(text);
}

void as_reply(std::string_view text) {
  etcd::HttpReply whole;
  etcd::HttpReply pieces;
  const State at_once = whole.feed(text);
  pieces.feed(text.substr(0, text.size() / 2));
  const State in_two = pieces.feed(text.substr(text.size() / 2));
  if (at_once != State::Whole || in_two != State::Whole) return;
  if (whole.body() != pieces.body() || whole.status() != pieces.status()) std::abort();
  as_body(whole.body());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  as_body(text);
  as_reply(text);
  return 0;
}

// The TLS handshake of a job with a secret. The first byte of the input chooses: the rest is what a
// client sends to a member's server; or what a server answers to a member; or it changes a member's
// own ClientHello. Nothing may crash, hang or grow, and no peer without the secret gets through.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string>

#include "common/tls/job_tls.hpp"

namespace {

using namespace cpprun;
using State = TlsStream::State;

const JobTls& job() {
  static const std::shared_ptr<const JobTls> made = [] {
    TlsCredentials credentials;
    credentials.secret = *JobSecret::copy_of("a secret that no input knows");
    return *JobTls::load(std::move(credentials), "job");
  }();
  return *made;
}

std::span<const uint8_t> octets_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A member that gets `bytes` in pieces of this size.
void expect_refused(TlsStream& member, std::span<const uint8_t> bytes, size_t piece) {
  std::array<uint8_t, 256> plain{};
  while (!bytes.empty()) {
    const size_t size = std::min(piece, bytes.size());
    member.feed(bytes.first(size));
    bytes = bytes.subspan(size);
    if (member.shake_hands() == State::Ready) std::abort();
    if (member.state() == State::Failed && member.why().empty()) std::abort();
    if (member.state() != State::Handshake && member.read(plain) != 0) std::abort();
    member.take_output();
  }
}

void expect_client_refused(std::span<const uint8_t> bytes, size_t piece) {
  expect_refused(*job().accept(TlsRole::Coordinator), bytes, piece);
}

void expect_server_refused(std::span<const uint8_t> bytes, size_t piece) {
  const auto client = job().connect(TlsRole::Coordinator);
  client->shake_hands();
  client->take_output();  // the hello
  expect_refused(*client, bytes, piece);
}

// Pairs of a position and what to change there. A changed ClientHello is no member's any more.
void change_hello(std::span<const uint8_t> changes) {
  const auto client = job().connect(TlsRole::Coordinator);
  client->shake_hands();
  const std::string hello = client->take_output();
  std::string changed = hello;
  for (; changes.size() >= 3; changes = changes.subspan(3)) {
    const size_t at = (size_t{changes[0]} << 8 | changes[1]) % changed.size();
    changed[at] = static_cast<char>(changed[at] ^ changes[2]);
  }
  const auto server = job().accept(TlsRole::Coordinator);
  server->feed(octets_of(changed));
  server->shake_hands();
  client->feed(octets_of(server->take_output()));
  client->shake_hands();
  server->feed(octets_of(client->take_output()));
  const bool is_member = server->shake_hands() == State::Ready;
  // The version of the record is the one thing that nothing protects (RFC 8446, 5.1).
  const bool is_same = changed.substr(3) == hello.substr(3) && changed[0] == hello[0];
  if (is_member && !is_same) std::abort();
  if (!is_member && changed == hello) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  const size_t piece = 1 + data[0] / 4;
  switch (data[0] % 4) {
    case 0:
      expect_client_refused(bytes, bytes.size());
      expect_client_refused(bytes, piece);
      break;
    case 2:
      expect_server_refused(bytes, bytes.size());
      expect_server_refused(bytes, piece);
      break;
    default: change_hello(bytes);
  }
  return 0;
}

// TLS between the members of a job, both ends in memory.
#include "common/tls/job_tls.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "common/limits/tls.hpp"
#include "common/tls/openssl.hpp"
#include "tests/support/job_tls.hpp"

namespace cpprun::test {
namespace {

using State = TlsStream::State;

std::span<const uint8_t> octets(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

const std::string kOurs(32, 's');

// Moves bytes until neither side has any; `client_bytes` gets what the client sent.
void shake_hands(TlsStream& client, TlsStream& server, std::string* client_bytes = nullptr,
                 size_t piece = SIZE_MAX) {
  const auto move = [piece](TlsStream& from, TlsStream& to, std::string* copy) {
    from.shake_hands();
    const std::string bytes = from.take_output();
    if (copy != nullptr) *copy += bytes;
    for (size_t at = 0; at < bytes.size(); at += std::min(piece, bytes.size() - at)) {
      to.feed(octets(std::string_view(bytes).substr(at, piece)));
      to.shake_hands();
    }
    return !bytes.empty();
  };
  bool has_moved = true;
  while (has_moved) {
    has_moved = move(client, server, client_bytes);
    has_moved = move(server, client, nullptr) || has_moved;
  }
}

std::string receive(TlsStream& from, TlsStream& to) {
  to.feed(octets(from.take_output()));
  std::string text(100, '\0');
  text.resize(to.read({reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  return text;
}

TEST(JobTls, PeersWithTheSameSecretExchangeBytes) {
  const auto tls = tls_of(kOurs);
  for (const size_t piece : {SIZE_MAX, size_t{1}}) {
    const auto client = tls->connect(TlsRole::Coordinator);
    const auto server = tls_of(kOurs)->accept(TlsRole::Coordinator);
    shake_hands(*client, *server, nullptr, piece);
    ASSERT_EQ(client->state(), State::Ready);
    ASSERT_EQ(server->state(), State::Ready) << server->why();
    ASSERT_TRUE(client->write(octets("hello")));
    EXPECT_EQ(receive(*client, *server), "hello");
    ASSERT_TRUE(server->write(octets("welcome")));
    EXPECT_EQ(receive(*server, *client), "welcome");
    client->end_output();
    EXPECT_EQ(receive(*client, *server), "");
    EXPECT_EQ(server->state(), State::Ended);
  }
}

TEST(JobTls, OneServerTakesSeveralJobs) {
  const auto client = tls_of(kOurs, "job a")->connect(TlsRole::Coordinator);
  const auto server = tls_of(kOurs, "")->accept(TlsRole::Coordinator);
  shake_hands(*client, *server);
  EXPECT_EQ(client->state(), State::Ready);
  EXPECT_EQ(server->state(), State::Ready);
}

TEST(JobTls, AnotherSecretIsRefusedOnBothSides) {
  const auto client = tls_of(std::string(32, 'x'))->connect(TlsRole::Coordinator);
  const auto server = tls_of(kOurs)->accept(TlsRole::Coordinator);
  shake_hands(*client, *server);
  ASSERT_EQ(client->state(), State::Failed);
  ASSERT_EQ(server->state(), State::Failed);
  EXPECT_EQ(client->why(), "it has another secret");
  EXPECT_EQ(server->why(), "it has another secret");
}

// What is sent to one kind of server means nothing to another.
TEST(JobTls, RolesHaveKeysOfTheirOwn) {
  const auto client = tls_of(kOurs)->connect(TlsRole::Coordinator);
  const auto server = tls_of(kOurs)->accept(TlsRole::Agent);
  shake_hands(*client, *server);
  EXPECT_EQ(client->state(), State::Failed);
  EXPECT_EQ(server->state(), State::Failed);
  EXPECT_NE(server->why().find("no secret of this job"), std::string::npos) << server->why();
}

TEST(JobTls, ReflectedHandshakeFails) {
  const auto client = tls_of(kOurs)->connect(TlsRole::Coordinator);
  client->shake_hands();
  client->feed(octets(client->take_output()));
  EXPECT_EQ(client->shake_hands(), State::Failed);
}

TEST(JobTls, ReplayedHandshakeFails) {
  std::string recorded;
  const auto client = tls_of(kOurs)->connect(TlsRole::Coordinator);
  const auto server = tls_of(kOurs)->accept(TlsRole::Coordinator);
  shake_hands(*client, *server, &recorded);
  ASSERT_EQ(server->state(), State::Ready);
  client->write(octets("stop the job"));
  recorded += client->take_output();
  const auto other = tls_of(kOurs)->accept(TlsRole::Coordinator);
  other->feed(octets(recorded));
  EXPECT_NE(other->shake_hands(), State::Ready);
  other->feed(octets(recorded.substr(recorded.size() / 2)));
  EXPECT_EQ(other->shake_hands(), State::Failed);
}

std::shared_ptr<TlsContext> client_context(int lowest) {
  auto made = TlsContext::make(TlsContext::Side::Client, lowest);
  EXPECT_TRUE(made);
  return std::move(*made);
}

std::unique_ptr<TlsStream> stream_of(const std::shared_ptr<TlsContext>& context) {
  return std::make_unique<TlsStream>(context->api(), context->api().SSL_new(context->get()),
                                     context->side(), TlsDemand::Nothing, context);
}

// OpenSSL would then check no name at all.
TEST(TlsContext, ConnectsToNoHostThatNoCertificateCanBeFor) {
  const std::shared_ptr<const TlsContext> context = client_context(TLS1_2_VERSION);
  for (const char* host : {"etcd-0.example", "10.0.0.1", "::1"}) {
    EXPECT_TRUE(TlsContext::connect(context, host)) << host;
  }
  const auto scoped = TlsContext::connect(context, "fe80::1%lo");
  ASSERT_FALSE(scoped);
  EXPECT_NE(scoped.error().text.find("'fe80::1%lo'"), std::string::npos) << scoped.error().text;
}

TEST(JobTls, OlderTlsIsRefused) {
  const std::shared_ptr<TlsContext> context = client_context(TLS1_2_VERSION);
  context->api().SSL_CTX_ctrl(context->get(), SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_2_VERSION,
                              nullptr);
  const auto client = stream_of(context);
  const auto server = tls_of(kOurs)->accept(TlsRole::Coordinator);
  shake_hands(*client, *server);
  EXPECT_EQ(client->state(), State::Failed);
  ASSERT_EQ(server->state(), State::Failed);
  EXPECT_EQ(server->why(), "it speaks no TLS 1.3");
}

// A client that shows no pre-shared key at all.
TEST(JobTls, ClientWithoutAKeyIsRefused) {
  const auto client = stream_of(client_context(TLS1_3_VERSION));
  const auto server = tls_of(kOurs)->accept(TlsRole::Coordinator);
  shake_hands(*client, *server);
  EXPECT_EQ(client->state(), State::Failed);
  EXPECT_EQ(server->state(), State::Failed);
}

TEST(JobTls, PlainBytesAreNoTls) {
  const auto client = tls_of(kOurs)->connect(TlsRole::Coordinator);
  client->shake_hands();
  client->feed(octets(std::string("\x20\0\0\0\x92\xa7refused", 13)));
  ASSERT_EQ(client->shake_hands(), State::Failed);
  EXPECT_NE(client->why().find("without the job's secret"), std::string::npos) << client->why();
}

TEST(JobTls, EndlessHandshakeIsGivenUp) {
  const auto server = tls_of(kOurs)->accept(TlsRole::Coordinator);
  // Records of one handshake message that is announced as very long.
  std::string record("\x16\x03\x01\x40\x00", 5);
  record += std::string("\x01\x01\x00\x00", 4) + std::string((16 << 10) - 4, 'a');
  size_t fed = 0;
  while (server->state() == State::Handshake && fed < 4 * limits::kTlsHandshakeBytes) {
    server->feed(octets(record));
    server->shake_hands();
    fed += record.size();
  }
  EXPECT_EQ(server->state(), State::Failed);
  EXPECT_LE(fed, limits::kTlsHandshakeBytes + record.size());
}

}  // namespace
}  // namespace cpprun::test

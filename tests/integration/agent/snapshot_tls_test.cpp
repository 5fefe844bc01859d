// Snapshots between agents of a job with a secret.
#include "tests/support/job_tls.hpp"
#include "tests/support/transfer_fixture.hpp"

namespace cpprun::test {
namespace {

class SnapshotsOverTls : public SnapshotsBetweenAgents {
 public:
  SnapshotsOverTls() { server_tls = client_tls = tls_of("0123456789abcdef"); }
};

TEST_F(SnapshotsOverTls, FetchesAllFiles) {
  // Less than a record, a record, blocks of several and a rest.
  const std::map<std::string, std::string> files{
      {"a.bin", text_of(100)}, {"b.bin", text_of(16 << 10)}, {"c.bin", text_of((3 << 20) + 7)}};
  has(files);
  serves();
  const Fetched fetched = fetches();
  ASSERT_TRUE(fetched.status) << fetched.status.error().text;
  expect_here(files);
}

TEST_F(SnapshotsOverTls, AnotherSecretGetsNothing) {
  has({{"a.bin", text_of(100)}});
  serves();
  client_tls = tls_of("another secret ..");
  expect_failed(fetches(400ms), "it has another secret");
}

TEST_F(SnapshotsOverTls, PlainClientsGetNothing) {
  has({{"a.bin", text_of(100)}});
  serves();
  client_tls.reset();
  EXPECT_EQ(asks_for("a.bin"), "");
  EXPECT_FALSE(fetches(400ms).status);
}

TEST_F(SnapshotsOverTls, ClientsNeverAskPlainly) {
  has({{"a.bin", text_of(100)}});
  server_tls.reset();
  serves();
  expect_failed(fetches(400ms), "no TLS");
}

// The key of the coordinator's connections opens none here.
TEST_F(SnapshotsOverTls, KeysAreThoseOfTheRole) {
  has({{"a.bin", text_of(100)}});
  serves();
  auto peer = PeerSocket::connect("127.0.0.1", port, 2s, cancel_token);
  ASSERT_TRUE(peer);
  EXPECT_FALSE(peer->secure(client_tls->connect(TlsRole::Coordinator), 5s));
}

}  // namespace
}  // namespace cpprun::test

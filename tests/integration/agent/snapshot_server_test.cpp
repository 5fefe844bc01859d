// Which files of a snapshot folder a server sends to whom, and hostile clients.
#include "common/limits/snapshots.hpp"
#include "tests/support/transfer_fixture.hpp"

namespace cpprun::test {
namespace {

TEST_F(SnapshotsBetweenAgents, ServesOnlyTheManifestAndItsFiles) {
  has({{"model.pt", "model"}});
  std::ofstream(there / "step-20" / "private") << "not in the manifest";
  std::ofstream(there / "outside") << "x";
  fs::create_symlink("/etc/passwd", there / "step-20" / "link");
  serves();
  EXPECT_EQ(asks_for("model.pt"), "bytes 5");
  EXPECT_TRUE(asks_for("manifest.json").starts_with("bytes "));
  for (const char* file : {"private", "../outside", "/etc/passwd", "link", ".", "..", "model.pt/",
                           "step-20/model.pt", "model.pt "}) {
    EXPECT_EQ(asks_for(file), "no no such file in this snapshot") << file;
  }
}

TEST_F(SnapshotsBetweenAgents, DoesNotFollowSymlinks) {
  has({{"model.pt", "model"}});
  fs::rename(there / "step-20" / "model.pt", there / "elsewhere");
  fs::create_symlink(there / "elsewhere", there / "step-20" / "model.pt");
  serves();
  EXPECT_TRUE(asks_for("model.pt").starts_with("no "));
}

TEST_F(SnapshotsBetweenAgents, RefusesClientsWithoutTheSecret) {
  has({{"model.pt", "model"}});
  serves();
  EXPECT_EQ(asks_for("model.pt", "wrong"), "secret");
  EXPECT_EQ(asks_for("model.pt", std::string(32, '0')), "secret");
  EXPECT_EQ(asks_for("model.pt", kSecret, std::string(32, 'b')), "no it is not there any more");
  server->allow("");
  EXPECT_EQ(asks_for("model.pt"), "secret") << "its round is over";
  EXPECT_EQ(asks("cpprun-snapshot-1  20 " + kId + " model.pt"), "") << "an empty secret is none";
}

TEST_F(SnapshotsBetweenAgents, RejectsInvalidRequests) {
  serves();
  for (const std::string& line :
       {std::string(), std::string("GET / HTTP/1.1"), std::string(100'000, 'x'),
        std::string("cpprun-snapshot-1 ") + kSecret + " -1 " + kId + " model.pt",
        std::string("cpprun-snapshot-1 ") + kSecret + " 20 " + kId + " ",
        std::string("cpprun-snapshot-2 ") + kSecret + " 20 " + kId + " model.pt"}) {
    EXPECT_EQ(asks(line), "") << line.substr(0, 80);
  }
}

TEST_F(SnapshotsBetweenAgents, ManySilentClientsDoNotBlockOthers) {
  has({{"model.pt", text_of(1000)}});
  serves();
  std::vector<PeerSocket> silent;
  for (size_t i = 0; i < limits::kSnapshotConnections + 20; ++i) {
    auto peer = PeerSocket::connect("127.0.0.1", port, 2s, cancel_token);
    ASSERT_TRUE(peer);
    silent.push_back(std::move(*peer));
  }
  const Fetched fetched = fetches(20s);
  EXPECT_TRUE(fetched.status) << fetched.status.error().text;
}

TEST_F(SnapshotsBetweenAgents, LimitsConcurrentTransfers) {
  has({{"model.pt", "model"}});
  serves();
  std::vector<PeerSocket> served;
  const std::string words = encode(Request{kSecret, {kStep, kId}, "model.pt"});
  for (size_t i = 0; i <= limits::kSnapshotPeers; ++i) {
    auto peer = PeerSocket::connect("127.0.0.1", port, 2s, cancel_token);
    ASSERT_TRUE(peer && peer->send(words, 1s));
    const Result<std::string> answer = peer->receive_line(5s);
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, i < limits::kSnapshotPeers ? "bytes 5" : "busy") << i;
    served.push_back(std::move(*peer));
  }
}

}  // namespace
}  // namespace cpprun::test

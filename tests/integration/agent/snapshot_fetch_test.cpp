// Fetching a snapshot from another agent, including broken and hostile ones.
#include <algorithm>

#include "common/limits/snapshots.hpp"
#include "tests/support/server_fixture.hpp"
#include "tests/support/transfer_fixture.hpp"

namespace cpprun::test {
namespace {

TEST_F(SnapshotsBetweenAgents, FetchesAllFilesUnchanged) {
  const std::map<std::string, std::string> files{
      {"model.pt", text_of(5'000'011)}, {"optim.pt", text_of(70'000)}, {"rank-0.pt", ""}};
  has(files);
  serves();
  const Fetched fetched = fetches();
  ASSERT_TRUE(fetched.status) << fetched.status.error().text;
  EXPECT_EQ(announced, 5'070'011U);
  expect_here(files);
}

TEST_F(SnapshotsBetweenAgents, SkipsFilesThatExistLocally) {
  has({{"model.pt", "x"}});
  fs::rename(there, here);
  EXPECT_TRUE(fetches().status) << "no node is asked, none is there";
}

TEST_F(SnapshotsBetweenAgents, ReplacesAnotherSnapshotOfTheSameStep) {
  has({{"model.pt", "new"}});
  fs::create_directories(here / "step-20");
  std::ofstream(here / "step-20" / "model.pt") << "old and incomplete";
  std::ofstream(here / "step-20" / "manifest.json") << "{";
  serves();
  ASSERT_TRUE(fetches().status);
  expect_here({{"model.pt", "new"}});
}

TEST_F(SnapshotsBetweenAgents, AcceptsASecretThatArrivesLate) {
  has({{"model.pt", text_of(1000)}});
  serves("");
  std::thread later([this] {
    while (asks_for("manifest.json") != "secret") continue;
    server->allow(kSecret);
  });
  const Fetched fetched = fetches();
  later.join();
  ASSERT_TRUE(fetched.status) << fetched.status.error().text;
}

TEST_F(SnapshotsBetweenAgents, FetchesNothingWithoutTheSecret) {
  has({{"model.pt", text_of(1000)}});
  serves("another");
  expect_failed(fetches(300ms), "does not know this round");
}

// Otherwise a fetch from a machine that lost its power would wait in the kernel, and TLS for
// delayed acknowledgements.
TEST_F(SnapshotsBetweenAgents, BothEndsSetOptionsOfTheirSockets) {
  has({{"model.pt", text_of(1000)}});
  serves();
  auto peer = PeerSocket::connect("127.0.0.1", port, 2s, cancel_token);
  ASSERT_TRUE(peer);
  const Request request{kSecret, {kStep, kId}, "model.pt"};
  ASSERT_TRUE(peer->ask(encode(request), 10s));  // the server has accepted the connection
  const std::vector<SocketFacts> ours = sockets_to_port(port);
  ASSERT_EQ(ours.size(), 1u);
  EXPECT_TRUE(ours[0].detects_dead_peer);
  EXPECT_TRUE(ours[0].is_no_delay);
  const std::vector<SocketFacts> theirs = sockets_of_port(port);
  EXPECT_EQ(theirs.size(), 2u) << "the listener and one connection";
  for (const SocketFacts& facts : theirs) EXPECT_TRUE(facts.detects_dead_peer);
  EXPECT_TRUE(std::ranges::any_of(theirs, &SocketFacts::is_no_delay)) << "the connection";
}

TEST_F(SnapshotsBetweenAgents, ReconnectsAfterABrokenConnection) {
  const std::string model = text_of(3'000'000);
  has({{"model.pt", model}});
  int tries = 0;
  FakeServer fake([&](PeerSocket& peer, const Request& request) {
    if (request.file == "manifest.json") return give(peer, encode(manifest));
    if (++tries < 3) return give(peer, model.substr(0, 2'000'000), model.size()) && false;
    return give(peer, model);
  });
  const Fetched fetched = fetches_from(fake);
  ASSERT_TRUE(fetched.status) << fetched.status.error().text;
  EXPECT_EQ(fake.connections, 3);
  expect_here({{"model.pt", model}});
}

TEST_F(SnapshotsBetweenAgents, FailsWhenThePeerIsUnreachable) {
  {
    FakeServer gone([](PeerSocket&, const Request&) { return false; });
    port = gone.port;
  }
  expect_failed(fetches(300ms), "Connection refused");
}

TEST_F(SnapshotsBetweenAgents, GivesUpOnAStalledPeer) {
  has({{"model.pt", text_of(1000)}});
  for (const char* where : {"manifest.json", "model.pt"}) {
    FakeServer fake([&](PeerSocket& peer, const Request& request) {
      if (request.file == where) return give(peer, "begins", 1000);
      return give(peer, encode(manifest));
    });
    const Fetched fetched = fetches_from(fake);
    ASSERT_FALSE(fetched.status) << where;
    expect_no_traces();
  }
}

TEST_F(SnapshotsBetweenAgents, GivesUpOnASilentPeer) {
  FakeServer fake([](PeerSocket&, const Request&) { return true; });
  expect_failed(fetches_from(fake), "nothing came for");
}

TEST_F(SnapshotsBetweenAgents, RejectsBytesThatContradictTheManifest) {
  const std::string model = text_of(2'000'000);
  has({{"model.pt", model}});
  std::string changed = model;
  changed[1'500'000] = static_cast<char>(changed[1'500'000] ^ 1);
  const std::vector<std::pair<std::string, std::string>> lies{
      {changed, "another checksum"}, {model + "x", "larger"}, {model.substr(1), "shorter"}};
  for (const auto& [lie, words] : lies) {
    FakeServer fake([&, lie = lie](PeerSocket& peer, const Request& request) {
      return give(peer, request.file == "model.pt" ? lie : encode(manifest));
    });
    expect_failed(fetches_from(fake), words, true);
  }
}

TEST_F(SnapshotsBetweenAgents, RejectsInvalidManifests) {
  Manifest other = manifest_of({{"model.pt", "x"}});
  other.id = std::string(32, 'b');
  Manifest later = manifest_of({{"model.pt", "x"}});
  later.step = 21;
  std::string upwards = encode(manifest_of({{"model.pt", "x"}}));
  upwards.replace(upwards.find("model.pt"), 8, "../m.pt\\");
  Manifest huge = manifest_of({{"model.pt", "x"}});
  huge.files[0].bytes = limits::kSnapshotFileBytes + 1;
  for (const std::string& lie :
       {encode(other), encode(later), upwards, encode(huge), std::string("no JSON"), std::string(),
        std::string(100'000, '[')}) {
    FakeServer fake([&](PeerSocket& peer, const Request&) { return give(peer, lie); });
    expect_failed(fetches_from(fake), "manifest.json", true);
  }
  FakeServer fake(
      [](PeerSocket& peer, const Request&) { return give(peer, "", limits::kManifestBytes + 1); });
  expect_failed(fetches_from(fake), "larger", true);
}

// Written again it would be longer than a manifest may be.
TEST_F(SnapshotsBetweenAgents, KeepsTheManifestAsItCame) {
  has({{"model.pt", "x"}});
  std::string text = encode(manifest);
  const std::string user = "\"user\": {";
  ASSERT_NE(text.find(user), std::string::npos);
  std::string numbers = "\"x\": [0";
  // With a line for each number, three times as long, it would be larger than kManifestBytes.
  while (numbers.size() < limits::kManifestBytes * 3 / 8) numbers += ",0";
  text.insert(text.find(user) + user.size(), numbers + "]");
  FakeServer fake([&](PeerSocket& peer, const Request& request) {
    return give(peer, request.file == "manifest.json" ? text : "x");
  });
  const Fetched fetched = fetches_from(fake, 600s);
  ASSERT_TRUE(fetched.status) << fetched.status.error().text;
  std::ifstream kept(here / "step-20" / "manifest.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), text);
}

TEST_F(SnapshotsBetweenAgents, RejectsInvalidMessages) {
  for (const std::string& words : {std::string("bytes -1\n"), std::string("bytes 1e3\n"),
                                   std::string("HTTP/1.1 200 OK\n"), std::string("\n")}) {
    FakeServer fake([&](PeerSocket& peer, const Request&) { return peer.send(words, 1s).ok(); });
    expect_failed(fetches_from(fake), "no valid message of the snapshot protocol");
  }
  const std::string endless(snapshot_protocol::kLineBytes * 4, 'x');
  FakeServer fake([&](PeerSocket& peer, const Request&) { return peer.send(endless, 1s).ok(); });
  expect_failed(fetches_from(fake), "no end");
}

TEST_F(SnapshotsBetweenAgents, ARefusalIsFinal) {
  FakeServer fake([](PeerSocket& peer, const Request&) {
    return peer.send(encode(Answer{Answer::Kind::No, 0, "it is not there any more"}), 1s).ok();
  });
  expect_failed(fetches_from(fake, 20s), "it is not there any more");
  EXPECT_EQ(fake.connections, 1);
}

TEST_F(SnapshotsBetweenAgents, WaitsForABusyPeer) {
  has({{"model.pt", text_of(1000)}});
  int asked = 0;
  FakeServer fake([&](PeerSocket& peer, const Request& request) {
    if (++asked < 8) return peer.send(encode(Answer{Answer::Kind::Busy}), 1s).ok() && false;
    return give(peer, request.file == "model.pt" ? text_of(1000) : encode(manifest));
  });
  EXPECT_TRUE(fetches_from(fake, 300ms).status) << "longer than a stall";
}

TEST_F(SnapshotsBetweenAgents, WaitsForABusyPeerOnlyALimitedTime) {
  FakeServer fake([&](PeerSocket& peer, const Request&) {
    return peer.send(encode(Answer{Answer::Kind::Busy}), 1s).ok() && false;
  });
  expect_failed(fetches_from(fake, 300ms), "too many others");
}

TEST_F(SnapshotsBetweenAgents, CancellingAFetchStopsItImmediately) {
  FakeServer fake([this](PeerSocket&, const Request&) {
    cancel_token->stop();
    return true;
  });
  EXPECT_FALSE(fetches_from(fake, 1h).status);
  expect_no_traces();
}

TEST_F(SnapshotsBetweenAgents, ReportsAnUnwritableFolder) {
  has({{"model.pt", "x"}});
  serves();
  std::ofstream(here) << "a file where the folder should be";
  const Fetched fetched = fetches(20s);
  ASSERT_FALSE(fetched.status);
  EXPECT_FALSE(fetched.is_damaged);
}

}  // namespace
}  // namespace cpprun::test

// Each reader of events gets the newest state once. The server drops a reader that does not read,
// and it delays no other.
#include <gtest/gtest.h>

#include <set>

#include "common/limits/dashboard.hpp"
#include "rendezvous/server/dashboard/event_streams.hpp"
#include "tests/support/server_fixture.hpp"

namespace cpprun {
namespace {

// A peer that reads only on request.
class FakePeer final : public Connection {
 public:
  explicit FakePeer(uint64_t id) : id_(id) {}
  SessionId id() const override { return id_; }
  bool is_open() const override { return true; }
  bool is_above_high_watermark() override { return false; }
  void send(std::string_view bytes) override { queued_ += bytes; }
  void send_shared(const SharedBytes& bytes) override { queued_ += bytes.bytes; }
  size_t unsent() const override { return queued_.size(); }
  void close() override {}
  void reset() override { is_reset = true; }
  std::string peer_address() const override { return "10.0.0.1"; }
  std::string local_address() const override { return "10.0.0.2"; }
  std::shared_ptr<const void> input_owner(size_t&) const override { return nullptr; }

  std::string reads() { return std::exchange(queued_, ""); }

  bool is_reset = false;

 private:
  SessionId id_;
  std::string queued_;
};

class EventStreamsTest : public testing::Test {
 public:
  void tick(const std::string& state) { streams.tick(++now_ms, {{"state", state}}); }
  EventStreams streams;
  FakePeer peer{1};
  int64_t now_ms = 100;
};

TEST_F(EventStreamsTest, SendsAStateOnceAndToNewReaders) {
  ASSERT_TRUE(streams.add(peer));
  tick("{1}");
  EXPECT_EQ(peer.reads(), "event: state\nid: 101\ndata: {1}\n\n");
  tick("{1}");
  EXPECT_EQ(peer.reads(), "");
  FakePeer late(2);
  ASSERT_TRUE(streams.add(late));
  tick("{1}");
  EXPECT_EQ(peer.reads(), "");
  EXPECT_EQ(late.reads(), "event: state\nid: 101\ndata: {1}\n\n");
}

TEST_F(EventStreamsTest, ASlowReaderGetsTheNewestState) {
  streams.add(peer);
  tick("{1}");
  tick("{2}");
  tick("{3}");
  EXPECT_EQ(peer.reads(), "event: state\nid: 101\ndata: {1}\n\n") << "no more than one waits";
  tick("{3}");
  EXPECT_EQ(peer.reads(), "event: state\nid: 103\ndata: {3}\n\n");
  EXPECT_FALSE(peer.is_reset);
}

TEST_F(EventStreamsTest, DropsAReaderThatNeverReads) {
  FakePeer good(2);
  streams.add(peer);
  streams.add(good);
  for (int i = 0; i <= limits::kStreamUnreadTicks; ++i) {
    EXPECT_EQ(peer.is_reset, false) << i;
    tick(std::to_string(i));
    EXPECT_NE(good.reads(), "");
  }
  EXPECT_TRUE(peer.is_reset);
  EXPECT_FALSE(good.is_reset);
}

TEST_F(EventStreamsTest, SendsCommentsToKeepTheConnectionAlive) {
  streams.add(peer);
  tick("{}");
  peer.reads();
  for (int i = 1; i < limits::kStreamSilentTicks; ++i) tick("{}");
  EXPECT_EQ(peer.reads(), "");
  tick("{}");
  EXPECT_EQ(peer.reads(), ":\n\n");
}

TEST_F(EventStreamsTest, LimitsTheNumberOfReaders) {
  std::vector<std::unique_ptr<FakePeer>> peers;
  for (uint64_t i = 0; i < limits::kStreams; ++i) {
    peers.push_back(std::make_unique<FakePeer>(i + 10));
    EXPECT_TRUE(streams.add(*peers.back()));
  }
  EXPECT_FALSE(streams.add(peer));
  streams.remove(SessionId(10));
  EXPECT_TRUE(streams.add(peer));
}

TEST(EventStreamServer, ASlowReaderOfALargeStateDelaysNoOther) {
  ServerHooks hooks;
  int64_t asked = 0;
  hooks.topics = [&asked](const std::set<std::string>&) -> std::vector<Topic> {
    return {{"state", std::string(8'000'000, 'x') + std::to_string(++asked)}};
  };
  RunningServer server({}, std::move(hooks));
  Client deaf(server.port());
  deaf.send("GET /events HTTP/1.1\r\n\r\n");
  Client good(server.port());
  good.send("GET /events HTTP/1.1\r\n\r\n");
  EXPECT_EQ(good.read(16'000'000).size(), 16'000'000U);
  EXPECT_NE(http(server.port(), "GET /metrics HTTP/1.0\r\n\r\n").find("cpprun_event_readers 2\n"),
            std::string::npos);
}

}  // namespace
}  // namespace cpprun

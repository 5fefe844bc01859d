// The simulated network keeps TCP's guarantees, and no others.
#include "tests/support/sim/network.hpp"

#include <gtest/gtest.h>

#include <string>

namespace cpprun::sim {
namespace {

using namespace std::chrono_literals;

class Peer final : public Program {
 public:
  void on_dialled(ConnectionId, bool is_connected, const std::string& why) override {
    log += is_connected ? "[connected]" : "[" + why + "]";
  }
  void on_accepted(ConnectionId connection) override {
    accepted = connection;
    log += "[accepted]";
  }
  void on_bytes(ConnectionId, std::span<const uint8_t> bytes) override {
    log.append(bytes.begin(), bytes.end());
  }
  void on_ended(ConnectionId, Ending how) override {
    log += how == Ending::Fin ? "[fin]" : "[reset]";
  }

  ConnectionId accepted = 0;
  std::string log;
};

class NetworkTest : public testing::Test {
 protected:
  static constexpr HostId kHere = 1;
  static constexpr HostId kThere = 2;
  static constexpr int kPort = 29400;

  void listens() {
    server_id = network.add(kThere, server);
    network.listen(server_id, kPort);
  }
  void dials() {
    client_id = network.add(kHere, client);
    line = network.dial(client_id, kThere, kPort);
  }
  void are_connected() {
    listens();
    dials();
    passes(100ms);
    ASSERT_EQ(client.log, "[connected]");
    client.log.clear();
    server.log.clear();
  }
  void sends(const std::string& text) {
    network.send(client_id, line, Bytes(text.begin(), text.end()));
  }
  void answers(const std::string& text) {
    network.send(server_id, line, Bytes(text.begin(), text.end()));
  }
  void passes(Duration duration) {
    Instant end = event_queue.now() + duration;
    while (event_queue.step(end)) {
    }
  }

  EventQueue event_queue;
  Trace trace;
  Network network{event_queue, trace, Prng(1), NetworkOptions{}};
  Peer client;
  Peer server;
  ProgramId client_id = 0;
  ProgramId server_id = 0;
  ConnectionId line = 0;
};

TEST_F(NetworkTest, DeliversBytesInOrderThenTheEnd) {
  are_connected();
  for (char c = 'a'; c <= 'z'; ++c) sends(std::string(3, c));
  network.close(client_id, line, Ending::Fin);
  passes(1s);
  std::string expected;
  for (char c = 'a'; c <= 'z'; ++c) expected += std::string(3, c);
  EXPECT_EQ(server.log, expected + "[fin]");
}

TEST_F(NetworkTest, RefusesWithoutListenerAndTimesOutWithoutHost) {
  dials();
  passes(100ms);
  EXPECT_EQ(client.log, "[Connection refused]");
  network.cut_off(kThere);
  client.log.clear();
  network.dial(client_id, kThere, kPort);
  passes(4900ms);
  EXPECT_EQ(client.log, "");
  passes(200ms);
  EXPECT_EQ(client.log, "[no answer]");
}

TEST_F(NetworkTest, AHangingConnectSucceedsWhenTheRouteReturns) {
  listens();
  network.cut_off(kThere);
  dials();
  passes(2s);
  network.mend_host(kThere);
  passes(2s);
  EXPECT_EQ(client.log, "[connected]");
}

TEST_F(NetworkTest, ACutDelaysAndLosesNothing) {
  are_connected();
  network.cut(kHere, kThere);
  sends("hello");
  answers("still received");
  passes(5s);
  EXPECT_EQ(server.log, "");
  EXPECT_EQ(client.log, "still received") << "the other way is open";
  network.mend(kHere, kThere);
  passes(2s);
  EXPECT_EQ(server.log, "hello");
}

TEST_F(NetworkTest, DyingWithUnreadBytesResetsTheConnection) {
  are_connected();
  network.set_reading(server_id, false);
  sends("unread");
  passes(1s);
  network.end(server_id);
  passes(1s);
  EXPECT_EQ(client.log, "[reset]");
}

TEST_F(NetworkTest, DyingWithoutUnreadBytesSendsFin) {
  are_connected();
  network.end(server_id);
  passes(1s);
  EXPECT_EQ(client.log, "[fin]");
}

TEST_F(NetworkTest, AHostWithoutPowerSendsNothingAndForgetsConnections) {
  are_connected();
  network.set_power(kThere, false);
  sends("is anybody there?");
  passes(10s);
  EXPECT_EQ(client.log, "") << "half open: it has received no FIN";
  network.set_power(kThere, true);
  passes(2s);
  EXPECT_EQ(client.log, "[reset]");
}

TEST_F(NetworkTest, ABlackHoleDropsBothDirections) {
  are_connected();
  network.black_hole(line);
  sends("hello");
  answers("hello");
  passes(60s);
  EXPECT_EQ(client.log + server.log, "");
}

TEST_F(NetworkTest, AFrozenReaderGetsEverythingLater) {
  are_connected();
  network.set_reading(server_id, false);
  sends("one ");
  passes(1s);
  sends("two");
  passes(1s);
  EXPECT_EQ(server.log, "");
  network.set_reading(server_id, true);
  network.deliver_unread(server_id);
  EXPECT_EQ(server.log, "one two");
}

TEST_F(NetworkTest, ABrokenConnectionEndsOnBothSides) {
  are_connected();
  sends("lost");
  network.break_connection(line);
  passes(1s);
  EXPECT_EQ(client.log, "[reset]");
  EXPECT_EQ(server.log, "[reset]");
}

TEST_F(NetworkTest, CongestionDelaysUntilItEnds) {
  are_connected();
  network.clog(kHere, kThere, event_queue.now() + 3s);
  sends("late");
  passes(2900ms);
  EXPECT_EQ(server.log, "");
  passes(200ms);
  EXPECT_EQ(server.log, "late");
}

}  // namespace
}  // namespace cpprun::sim

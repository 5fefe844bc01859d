// LinkChecker: two agents exchange data over a real connection.
#include "agent/daemon/services/link_checker.hpp"

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>

#include "common/limits/rendezvous.hpp"
#include "rendezvous/protocol/transfer/link_protocol.hpp"
#include "tests/support/job_tls.hpp"

namespace cpprun::test {
namespace {

constexpr int64_t kBytes = 3 << 20;

class LinkCheckerTest : public testing::Test {
 public:
  LinkCheckerTest() { config.link_check_bytes = kBytes; }

  // By the agent that the coordinator asks.
  control::LinkResult checks(const std::string& secret, int64_t bytes = kBytes) {
    return check_link({7, {"127.0.0.1", port}, secret, bytes}, client_tls.get(),
                      std::make_shared<CancelToken>());
  }

  boost::asio::io_context loop;
  AgentConfig config;
  std::shared_ptr<const JobTls> client_tls;
  int64_t port = 0;
};

TEST_F(LinkCheckerTest, GoodLinkPasses) {
  LinkChecker peer(loop, config, {});
  port = peer.serve("127.0.0.1");
  ASSERT_NE(port, 0);
  EXPECT_EQ(peer.serve("127.0.0.1"), port) << "the port stays open";
  const control::LinkResult result = checks(peer.secret());
  EXPECT_EQ(result.why, "");
  EXPECT_EQ(result.number, 7);
  EXPECT_EQ(result.bytes, 2 * kBytes);
  EXPECT_GT(result.took, Duration{});
}

TEST_F(LinkCheckerTest, TlsLinkPasses) {
  client_tls = tls_of("0123456789abcdef");
  config.rendezvous.job_tls = client_tls;
  LinkChecker peer(loop, config, {});
  port = peer.serve("127.0.0.1");
  EXPECT_EQ(checks(peer.secret()).why, "");
  client_tls.reset();
  EXPECT_NE(checks(peer.secret()).why, "") << "plain clients get nothing";
}

TEST_F(LinkCheckerTest, AnotherSecretGetsNothing) {
  LinkChecker peer(loop, config, {});
  port = peer.serve("127.0.0.1");
  EXPECT_NE(checks("0123").why, "");
}

TEST_F(LinkCheckerTest, ClosedPortFails) {
  {
    LinkChecker peer(loop, config, {});
    port = peer.serve("127.0.0.1");
  }
  EXPECT_NE(checks("secret").why, "");
}

TEST_F(LinkCheckerTest, WithoutTheOptionNoPortIsOpen) {
  config.link_check_bytes = 0;
  LinkChecker peer(loop, config, {});
  EXPECT_EQ(peer.serve("127.0.0.1"), 0);
}

// The coordinator's request runs beside the loop, which sends the result.
TEST_F(LinkCheckerTest, RequestIsAnswered) {
  LinkChecker peer(loop, config, {});
  port = peer.serve("127.0.0.1");
  std::optional<control::LinkResult> sent;
  LinkChecker asked(loop, config, [&](const control::LinkResult& result) {
    sent = result;
    loop.stop();
  });
  const auto work = boost::asio::make_work_guard(loop);
  asked.on_message(control::CheckLink{3, {"127.0.0.1", port}, peer.secret(), kBytes});
  loop.run_for(limits::kLinkCheckTimeout * 10);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->number, 3);
  EXPECT_EQ(sent->why, "");
}

TEST(LinkProtocolTest, RequestsAreReadAsWritten) {
  const std::string wire = encode(link_protocol::Request{"cafe", 1 << 20});
  EXPECT_EQ(wire, "cpprun-link-1 cafe 1048576\n");
  const auto request = link_protocol::decode_request("cpprun-link-1 cafe 1048576");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->secret, "cafe");
  EXPECT_EQ(request->bytes, 1 << 20);
}

TEST(LinkProtocolTest, OtherLinesAreRefused) {
  for (const char* line : {"", "cpprun-link-1", "cpprun-link-1 cafe", "cpprun-link-1 cafe x",
                           "cpprun-link-1  5", "cpprun-link-1 cafe -1", "cpprun-link-2 cafe 5",
                           "cpprun-link-1 cafe 5 6", "cpprun-link-1 cafe 1073741825"}) {
    EXPECT_FALSE(link_protocol::decode_request(line)) << line;
  }
}

}  // namespace
}  // namespace cpprun::test

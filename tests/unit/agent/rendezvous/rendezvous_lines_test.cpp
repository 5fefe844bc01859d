// The JSON lines of cpprunctl rendezvous-client.
#include "agent/rendezvous/rendezvous_lines.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using What = RendezvousRequest::What;

TEST(RendezvousLines, Requests) {
  EXPECT_EQ(parse_rendezvous_request(R"({"op":"next"})")->what, What::Next);
  EXPECT_EQ(parse_rendezvous_request(R"({"op":"close"})")->what, What::Close);
  const auto failed = parse_rendezvous_request(R"({"op":"fail","why":"rank 3 failed"})");
  EXPECT_EQ(failed->what, What::Fail);
  EXPECT_EQ(failed->why, "rank 3 failed");
}

TEST(RendezvousLines, OtherLinesAreRefused) {
  for (const char* line : {"", "next", "[]", "{}", R"({"op":"stop"})", R"({"op":1})",
                           "{\"op\":", R"({"op":{"next":{"a":{}}}})", "\x1b[2J"}) {
    const auto request = parse_rendezvous_request(line);
    ASSERT_FALSE(request) << line;
    EXPECT_EQ(request.error().text.find('\x1b'), std::string::npos);
  }
}

TEST(RendezvousLines, Events) {
  control::RankAssignment round;
  round.round = RoundNumber(3);
  round.group_rank = 1;
  round.group_size = 2;
  EXPECT_EQ(round_line(round, Endpoint{"10.0.0.1", 4711}),
            "{\"event\":\"round\",\"round\":3,\"rank\":1,\"world_size\":2,"
            "\"store_host\":\"10.0.0.1\",\"store_port\":4711}\n");
  EXPECT_EQ(restart_line("node b left"), "{\"event\":\"restart\",\"why\":\"node b left\"}\n");
  EXPECT_EQ(end_line(RendezvousEnd::NoConnection, "a\nb"),
            "{\"event\":\"end\",\"how\":\"no_connection\",\"text\":\"a\\nb\"}\n");
}

}  // namespace
}  // namespace cpprun::test

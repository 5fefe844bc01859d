// NodeLogs: lines of one node out of parts of its log files, rounds in order, and gaps by name.
#include "launcher/cpprunctl/logs/node_logs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/limits/dashboard.hpp"
#include "common/limits/log_files.hpp"

namespace cpprun::ctl {
namespace {

using control::LogGap;
using control::LogPart;
using control::LogReply;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kFile = 7;

RoundNumber round(int64_t number) { return RoundNumber(number); }

LogPart part(int64_t stream, int64_t offset, std::string bytes, LogGap gap = LogGap::None) {
  return {stream, offset, kFile, gap, std::move(bytes)};
}

LogReply reply_of(int64_t number, std::vector<LogPart> parts) {
  LogReply reply;
  reply.round = round(number);
  reply.base_rank = 4;
  reply.has_files = true;
  reply.parts = std::move(parts);
  return reply;
}

class NodeLogsTest : public testing::Test {
 protected:
  void take(const LogReply& reply, int64_t newest = 1) { logs_.take(reply, round(newest), sink_); }

  NodeLogs logs_{"node-b", -1};
  std::vector<std::string> lines_;  // "rank: line"
  std::vector<std::string> gaps_;
  NodeLogs::Sink sink_{[this](int64_t rank, const std::string& line) {
                         lines_.push_back(std::to_string(rank) + ": " + line);
                       },
                       [this](const std::string& what) { gaps_.push_back(what); }};
};

TEST_F(NodeLogsTest, ALineMayArriveInParts) {
  take(reply_of(1, {part(0, 0, "one\ntw"), part(2, 0, "other\n")}));
  EXPECT_THAT(lines_, ElementsAre("4: one", "5: other"));
  take(reply_of(1, {part(0, 6, "o\n")}));
  EXPECT_THAT(lines_, ElementsAre("4: one", "5: other", "4: two"));
  const control::LogRequest next = logs_.request(Incarnation(9));
  EXPECT_THAT(next.offsets, ElementsAre(8, 0, 6));
  EXPECT_THAT(next.files, ElementsAre(kFile, 0, kFile));
  EXPECT_EQ(next.round, round(1));
  EXPECT_THAT(gaps_, IsEmpty());
}

TEST_F(NodeLogsTest, PartsThatDoNotFollowAreIgnored) {
  take(reply_of(1, {part(0, 0, "one\n")}));
  take(reply_of(1, {part(0, 0, "one\n"), part(0, 100, "later\n")}));
  EXPECT_THAT(lines_, ElementsAre("4: one"));
}

TEST_F(NodeLogsTest, StreamsOutOfRangeAreIgnored) {
  take(reply_of(1, {part(-1, 0, "x\n"), part(2 * limits::kProgressWorkers, 0, "x\n"),
                    part(INT64_MAX, 0, "x\n")}));
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_THAT(logs_.request(Incarnation(9)).offsets, IsEmpty());
}

TEST_F(NodeLogsTest, ALineWithoutEndIsShownInParts) {
  const size_t most = limits::kLogPartBytes;
  int64_t at = 0;
  while (lines_.empty() && at < static_cast<int64_t>(2 * limits::kLogLineBytes)) {
    take(reply_of(1, {part(0, at, std::string(most, 'x'))}));
    at += static_cast<int64_t>(most);
  }
  EXPECT_EQ(at, static_cast<int64_t>(limits::kLogLineBytes));
}

TEST_F(NodeLogsTest, GapsNameRankRoundFileAndNode) {
  take(reply_of(1, {part(1, 0, "begun")}));
  take(reply_of(1, {part(1, 0, "new\n", LogGap::Truncated)}));
  EXPECT_THAT(gaps_, ElementsAre("rank 4, round 1: its stderr.log on node-b was truncated; lines "
                                 "behind its first 5 bytes may be missing"));
  EXPECT_THAT(lines_, ElementsAre("4: begun", "4: new"));
  take(reply_of(1, {part(1, 0, "next\n", LogGap::Replaced)}));
  EXPECT_THAT(gaps_.back(), HasSubstr("was replaced by another file"));
}

TEST_F(NodeLogsTest, ARemovedFileIsNamedOnceAndContinuesWhereItWas) {
  take(reply_of(1, {part(0, 0, "one\n")}));
  for (int i = 0; i < 3; ++i) take(reply_of(1, {part(0, 4, "", LogGap::Removed)}));
  EXPECT_THAT(gaps_, ElementsAre(HasSubstr("stdout.log on node-b was removed")));
  take(reply_of(1, {part(0, 4, "two\n")}));
  EXPECT_THAT(lines_, ElementsAre("4: one", "4: two"));
}

TEST_F(NodeLogsTest, CaughtUpWhenAReplyHasNoMore) {
  EXPECT_FALSE(logs_.has_answered());
  EXPECT_TRUE(logs_.is_through());
  LogReply reply = reply_of(1, {part(0, 0, "one\n")});
  reply.has_more = reply.is_ended = true;
  take(reply);
  EXPECT_FALSE(logs_.is_caught_up());
  EXPECT_FALSE(logs_.is_through());
  reply = reply_of(1, {});
  take(reply);
  EXPECT_TRUE(logs_.is_caught_up());
  EXPECT_FALSE(logs_.has_all());
  reply.is_ended = true;
  take(reply);
  EXPECT_TRUE(logs_.has_all());
  EXPECT_TRUE(logs_.is_through());
}

TEST_F(NodeLogsTest, ANodeWithoutWorkersHasAll) {
  take(LogReply());
  EXPECT_TRUE(logs_.has_answered());
  EXPECT_TRUE(logs_.has_all());
  EXPECT_FALSE(logs_.has_files());
}

TEST_F(NodeLogsTest, ANewRoundShowsTheIncompleteLineAndBeginsItsFilesAnew) {
  LogReply reply = reply_of(1, {part(0, 0, "one\nlast")});
  reply.is_ended = true;
  reply.next_round = round(3);
  take(reply);
  EXPECT_EQ(logs_.next_round(), round(3));
  logs_.advance(sink_);
  EXPECT_THAT(lines_, ElementsAre("4: one", "4: last"));
  EXPECT_EQ(logs_.round(), round(3));
  EXPECT_THAT(logs_.request(Incarnation(9)).offsets, IsEmpty());
  EXPECT_THAT(gaps_, IsEmpty());
  logs_.advance(sink_);
  EXPECT_EQ(logs_.round(), round(3));
}

// Other nodes still have lines of the round before.
TEST_F(NodeLogsTest, ARoundAfterTheNewestWaits) {
  take(reply_of(1, {part(0, 0, "one\n")}));
  take(reply_of(2, {part(0, 0, "early\n")}), 1);
  EXPECT_THAT(lines_, ElementsAre("4: one"));
  EXPECT_EQ(logs_.next_round(), round(2));
  take(reply_of(2, {part(0, 0, "now\n")}), 2);
  EXPECT_THAT(lines_, ElementsAre("4: one", "4: now"));
}

TEST_F(NodeLogsTest, RoundsThatTheAgentForgotAreAGap) {
  take(reply_of(1, {}));
  take(reply_of(5, {part(0, 0, "five\n")}), 5);
  EXPECT_THAT(gaps_, ElementsAre("node-b: its agent no longer knows the rounds between 1 and 5"));
  EXPECT_THAT(lines_, ElementsAre("4: five"));
}

TEST_F(NodeLogsTest, AsksForTheLastLinesUntilItHasCaughtUp) {
  NodeLogs logs("node-b", 10);
  EXPECT_EQ(logs.request(Incarnation(9)).lines, 10);
  LogReply reply = reply_of(1, {part(0, 50, "x\n")});
  reply.has_more = true;
  logs.take(reply, round(1), sink_);
  EXPECT_EQ(logs.request(Incarnation(9)).lines, 10);
  logs.take(reply_of(1, {}), round(1), sink_);
  EXPECT_EQ(logs.request(Incarnation(9)).lines, -1);
  EXPECT_THAT(lines_, ElementsAre("4: x"));
}

TEST_F(NodeLogsTest, FinishShowsIncompleteLines) {
  take(reply_of(1, {part(0, 0, "cut off"), part(3, 0, "too")}));
  logs_.finish(sink_);
  logs_.finish(sink_);
  EXPECT_THAT(lines_, ElementsAre("4: cut off", "5: too"));
}

}  // namespace
}  // namespace cpprun::ctl

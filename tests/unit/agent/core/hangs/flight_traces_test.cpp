// Flight-recorder dumps: parsing, and which rank differs. Names are those that torch 2.11 records
// with Gloo; those of NCCL are from its source, since NCCL was not run.
#include "agent/core/hangs/flight_traces.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using agent::compare_traces;
using agent::parse_trace;
using agent::RankTrace;
using agent::TraceFinding;

struct TracedCall {
  int64_t sequence;
  std::string operation;
  std::string sizes = "[[3]]";
  bool is_over = true;
};

std::string trace_dump(const std::vector<TracedCall>& calls) {
  std::string text;
  for (const TracedCall& call : calls)
    text += "0 default_pg\t" + std::to_string(call.sequence) + "\t" + call.operation + "\t" +
            call.sizes + (call.is_over ? "\tover\n" : "\topen\n");
  return text;
}

TraceFinding compare_dumps(const std::vector<std::string>& dumps) {
  std::vector<RankTrace> ranks;
  for (size_t i = 0; i < dumps.size(); ++i) {
    if (!dumps[i].empty()) ranks.push_back({Rank(static_cast<int64_t>(i)), parse_trace(dumps[i])});
  }
  return compare_traces(ranks);
}

TEST(FlightTracesTest, ParsesALine) {
  const auto trace = parse_trace(trace_dump({{2, "gloo:broadcast", "[[3], [4, 5]]", false}}));
  ASSERT_EQ(trace.size(), 1u);
  EXPECT_EQ(trace.front().group, "0 default_pg");
  EXPECT_EQ(trace.front().sequence, 2);
  EXPECT_EQ(trace.front().operation, "gloo:broadcast");
  EXPECT_EQ(trace.front().sizes, "[[3], [4, 5]]");
  EXPECT_FALSE(trace.front().is_over);
}

TEST(FlightTracesTest, ARankThatHasNotComeIsNamedWithTheCollective) {
  const std::string there =
      trace_dump({{1, "gloo:all_reduce"}, {2, "gloo:broadcast", "[[3]]", false}});
  const TraceFinding found = compare_dumps({there, trace_dump({{1, "gloo:all_reduce"}}), there});
  EXPECT_EQ(found.text,
            "rank 1 has not come to collective 2, gloo:broadcast of the group 0 default_pg, in "
            "which ranks 0, 2 wait; the last of rank 1 was 1, gloo:all_reduce");
  EXPECT_EQ(found.odd, Rank(1));
}

TEST(FlightTracesTest, DifferentOperationsAtOneNumberAreNamed) {
  const std::string right =
      trace_dump({{1, "gloo:all_reduce"}, {2, "gloo:broadcast", "[[3]]", false}});
  const std::string wrong =
      trace_dump({{1, "gloo:all_reduce"}, {2, "gloo:all_gather", "[[3]]", false}});
  const TraceFinding found = compare_dumps({right, right, wrong});
  EXPECT_EQ(found.text,
            "collective 2 of the group 0 default_pg differs: rank 2 has issued gloo:all_gather, "
            "ranks 0, 1 have issued gloo:broadcast");
  EXPECT_EQ(found.odd, Rank(2));
  EXPECT_EQ(compare_dumps({right, wrong}).odd, std::nullopt) << "of two, either may be wrong";
}

TEST(FlightTracesTest, DifferentSizesOfAnAllReduceAreNamed) {
  const std::string right = trace_dump({{7, "nccl:all_reduce", "[[3]]", false}});
  const std::string wrong = trace_dump({{7, "nccl:all_reduce", "[[4]]", false}});
  const TraceFinding found = compare_dumps({right, wrong, right});
  EXPECT_NE(found.text.find("rank 1 has issued nccl:all_reduce of [[4]]"), std::string::npos)
      << found.text;
  EXPECT_EQ(found.odd, Rank(1));
  const std::string gather = trace_dump({{7, "nccl:_all_gather_base", "[[4]]", false}});
  EXPECT_EQ(
      compare_dumps({trace_dump({{7, "nccl:_all_gather_base", "[[3]]", false}}), gather}).text, "")
      << "sizes of other operations may differ";
}

TEST(FlightTracesTest, EqualDumpsAndDumpsOfOneRankShowNothing) {
  const std::string same = trace_dump({{1, "gloo:all_reduce"}, {2, "gloo:barrier", "[]", false}});
  EXPECT_EQ(compare_dumps({same, same}).text, "");
  EXPECT_EQ(compare_dumps({same}).text, "");
  EXPECT_EQ(compare_dumps({same, ""}).text, "") << "a rank without a dump is not judged";
  EXPECT_EQ(compare_dumps({}).text, "");
  EXPECT_EQ(
      compare_dumps({trace_dump({{2, "gloo:barrier"}}), trace_dump({{1, "gloo:barrier"}})}).text,
      "")
      << "no rank waits";
}

TEST(FlightTracesTest, AnythingElseIsLeftOut) {
  EXPECT_TRUE(parse_trace("").empty());
  EXPECT_TRUE(parse_trace("\xff\n\t\t\t\t\nx\ty\tz\t[]\tover\n-\t-1\tz\t[]\tover").empty());
  const auto hostile = parse_trace("g\x1b[2J\t1\tgloo:" + std::string(5'000, 'a') + "\t[]\topen");
  ASSERT_EQ(hostile.size(), 1u);
  EXPECT_EQ(hostile.front().group.find('\x1b'), std::string::npos);
  EXPECT_LT(hostile.front().operation.size(), 300u);
}

}  // namespace
}  // namespace cpprun::test

// The doctor's conclusions from the nodes' measurements of each other: one fault at a time.
#include <gtest/gtest.h>

#include <set>

#include "launcher/doctor/cross_node_checks.hpp"

namespace cpprun::doctor {
namespace {

using namespace std::chrono_literals;

// Four nodes without a problem between them.
NodesFacts good() {
  NodesFacts facts;
  facts.wanted = 4;
  facts.waited = 60s;
  for (int64_t i = 0; i < 4; ++i) {
    facts.nodes.push_back({"n" + std::to_string(i), "0.1.0", {"10.0.0.1"}, 40000, "s"});
    for (int64_t j = 0; j < 4; ++j) {
      if (i != j) facts.pairs.push_back({i, j, "", "", 100us, 1ms, 1e9});
    }
  }
  return facts;
}

Finding found(const NodesFacts& facts, std::string_view check) {
  for (Finding& finding : run_cross_node_checks(facts)) {
    if (finding.check == check) return finding;
  }
  ADD_FAILURE() << "no check " << check;
  return {};
}

void expect(const NodesFacts& facts, std::string_view check, Level level,
            const std::string& words) {
  for (const Finding& finding : run_cross_node_checks(facts)) {
    EXPECT_EQ(finding.cure.empty(), finding.level == Level::Good) << finding.check;
    EXPECT_TRUE(finding.check == check || finding.level == Level::Good) << finding.check;
  }
  const Finding finding = found(facts, check);
  EXPECT_EQ(finding.level, level);
  EXPECT_NE(finding.text.find(words), std::string::npos) << finding.text;
}

TEST(DoctorNodes, AllChecksPass) {
  expect(good(), "reach", Level::Good, "12 ways between nodes are open");
  expect(good(), "latency", Level::Good, "usually 0.1 ms");
  expect(good(), "speed", Level::Good, "usually 8 Gbit/s");
}

TEST(DoctorNodes, ANodeIsMissing) {
  NodesFacts facts = good();
  facts.wanted = 5;
  expect(facts, "nodes", Level::Problem, "4 of 5 came within 60 s: n0; n1; n2; n3");
}

TEST(DoctorNodes, VersionsDiffer) {
  NodesFacts facts = good();
  facts.nodes[2].version = "0.2.0";
  expect(facts, "versions", Level::Problem, "cpprun 0.2.0 on n2");
}

TEST(DoctorNodes, OneDirectionIsBlocked) {
  NodesFacts facts = good();
  facts.pairs[1].error = "10.0.0.1:40000: no answer in time";
  facts.pairs[1].latency = {};
  facts.pairs[1].bytes_per_s = 0;
  expect(facts, "reach", Level::Problem, "n0 to n2: 10.0.0.1:40000: no answer in time");
}

TEST(DoctorNodes, AllDirectionsAreBlocked) {
  NodesFacts facts = good();
  for (PairFacts& pair : facts.pairs) pair.error = "refused";
  expect(facts, "reach", Level::Problem, "; 6 more");
}

TEST(DoctorNodes, ANameResolvesToAnotherHost) {
  NodesFacts facts = good();
  facts.pairs[0].name_error = "'n1' is 127.0.1.1 there";
  expect(facts, "names", Level::Note, "n0 to n1: 'n1' is 127.0.1.1 there");
}

TEST(DoctorNodes, AClockIsAhead) {
  NodesFacts facts = good();
  for (PairFacts& pair : facts.pairs) {
    if (pair.to == 3) pair.clock_ahead = 2s;
    if (pair.from == 3) pair.clock_ahead = -2s;
  }
  expect(facts, "clocks", Level::Warning, "n0 to n3: its clock is ahead by 2.0 s");
  EXPECT_EQ(found(facts, "clocks").text.find("n3 to"), std::string::npos);
}

TEST(DoctorNodes, APairIsSlow) {
  NodesFacts facts = good();
  facts.pairs[4].bytes_per_s = 1e8;
  expect(facts, "speed", Level::Warning, "n1 to n2: 0.8 Gbit/s");
  facts = good();
  facts.least_bytes_per_s = 2e9;
  expect(facts, "speed", Level::Warning, "6 more");
  facts = good();
  facts.pairs[4].latency = 20ms;
  expect(facts, "latency", Level::Warning, "n1 to n2: 20 ms");
  facts = good();
  facts.most_latency = 50us;
  expect(facts, "latency", Level::Warning, "6 more");
}

TEST(DoctorNodes, EachNodeTestsEachOtherOnce) {
  for (int64_t count = 2; count <= 33; ++count) {
    std::set<std::pair<int64_t, int64_t>> met;
    for (int64_t round = 0; round < count_rounds(count); ++round) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t j = partner_of(i, round, count);
        if (j == count) continue;
        ASSERT_NE(i, j);
        ASSERT_EQ(partner_of(j, round, count), i) << count << " nodes, round " << round;
        met.emplace(i, j);
      }
    }
    EXPECT_EQ(static_cast<int64_t>(met.size()), count * (count - 1));
  }
}

}  // namespace
}  // namespace cpprun::doctor

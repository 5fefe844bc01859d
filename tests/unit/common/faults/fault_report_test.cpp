#include "common/faults/fault_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/faults/draw.hpp"
#include "common/faults/fault_report_text.hpp"
#include "common/faults/schedule.hpp"

namespace cpprun::faults {
namespace {

using testing::HasSubstr;

Plan plan_of(const std::string& faults, const std::string& expect = "{}") {
  const Result<Plan> plan =
      parse_plan("{\"plan\": [" + faults + "], \"expect\": " + expect + "}", "p.json");
  EXPECT_TRUE(plan.ok()) << plan.error().text;
  return drawn(plan ? *plan : Plan{}, 1);
}

Instant at(double when) { return Instant() + seconds(when); }

class FaultSchedule : public testing::Test {
 protected:
  // Two nodes of two workers; this is node 1, with ranks 2 and 3.
  Placement here(int64_t round) const { return {round, round - 1, 1, 2, 2, 2, 4}; }
};

TEST_F(FaultSchedule, TimeCountsFromTheFirstRound) {
  Schedule schedule(plan_of(R"({"do": "kill", "at": {"rank": 3, "after_s": 5}})"));
  EXPECT_TRUE(schedule.next_deadline().is_never());
  schedule.on_started(at(10), here(1));
  schedule.on_stopped();
  EXPECT_TRUE(schedule.next_deadline().is_never());
  schedule.on_started(at(12), here(2));
  EXPECT_EQ(schedule.next_deadline(), at(15));
  EXPECT_TRUE(schedule.take_due(at(14.9)).empty());
  const std::vector<DueFault> due = schedule.take_due(at(15));
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].rank, 3);
  EXPECT_TRUE(schedule.next_deadline().is_never());
}

TEST_F(FaultSchedule, TimeCountsFromANamedRound) {
  Schedule schedule(plan_of(R"({"do": "kill", "at": {"rank": 2, "after_s": 5, "round": 2}})"));
  schedule.on_started(at(0), here(1));
  EXPECT_TRUE(schedule.next_deadline().is_never());
  schedule.on_started(at(20), here(2));
  EXPECT_EQ(schedule.next_deadline(), at(25));
  schedule.on_started(at(22), here(3));  // it has passed
  EXPECT_TRUE(schedule.next_deadline().is_never());
}

TEST_F(FaultSchedule, SkipsFaultsOfOtherNodes) {
  Schedule schedule(plan_of(R"({"do": "kill", "at": {"rank": 1, "after_s": 1}},
                               {"do": "kill-agent", "at": {"node": 0, "after_s": 1}},
                               {"do": "kill-agent", "at": {"rank": 2, "after_s": 1}})"));
  schedule.on_started(at(0), here(1));
  const std::vector<DueFault> due = schedule.take_due(at(1));
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].fault, 2U);
  EXPECT_FALSE(due[0].rank.has_value());
}

// Each random fault hits exactly one of the nodes, on whichever node it is computed.
TEST_F(FaultSchedule, EachRandomFaultHitsOneNode) {
  const Plan plan = plan_of(R"({"do": "kill", "at": {"every_s": 1}, "times": 100})");
  Schedule first(plan);
  Schedule second(plan);
  first.on_started(at(0), {1, 0, 0, 2, 0, 2, 4});
  second.on_started(at(0), here(1));
  std::set<int64_t> hit;
  for (int n = 0; n < 100; ++n) {
    ASSERT_EQ(first.next_deadline(), second.next_deadline());
    const Instant next = first.next_deadline();
    std::vector<DueFault> due = first.take_due(next);
    for (const DueFault& one : second.take_due(next)) due.push_back(one);
    ASSERT_EQ(due.size(), 1U);
    hit.insert(*due[0].rank);
  }
  EXPECT_EQ(hit, (std::set<int64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(first.next_deadline().is_never());
}

bool holds(const FaultReport& report, const std::string& name, int code = 0,
           const std::string& hash = "") {
  for (const ExpectationResult& result : report.check_expectations(code, hash)) {
    if (result.name.rfind(name, 0) == 0) return result.is_held;
  }
  ADD_FAILURE() << "no failure summary on " << name;
  return false;
}

constexpr const char* kKill = R"({"do": "kill", "at": {"rank": 1, "step": 12}})";

FaultReport recovered(const std::string& expect) {
  FaultReport report(plan_of(kKill, expect));
  report.on_started(at(0), 1, 0);
  report.on_injected(at(5), 0, 1, "rank 1 in round 1, step 12", {.step = 12, .epoch = {}});
  report.on_started(at(5.5), 2, 1);
  report.on_began({.step = 10, .epoch = {}});
  return report;
}

TEST(FaultAccount, MeasuresRecoveryAndLostWork) {
  const FaultReport report = recovered(R"({"restarts": 1, "max_recovery_s": 0.5,
                                        "max_lost_steps": 2})");
  ASSERT_EQ(report.injections().size(), 1U);
  EXPECT_EQ(report.injections()[0].recovery, seconds(0.5));
  EXPECT_EQ(report.injections()[0].lost_steps, 2);
  for (const ExpectationResult& result : report.check_expectations(0, ""))
    EXPECT_TRUE(result.is_held) << result.text;
}

TEST(FaultAccount, EachExpectationCanFail) {
  EXPECT_FALSE(holds(recovered(R"({"restarts": 0})"), "restarts"));
  EXPECT_FALSE(holds(recovered(R"({"max_recovery_s": 0.4})"), "recovery"));
  EXPECT_FALSE(holds(recovered(R"({"max_lost_steps": 1})"), "lost steps"));
  EXPECT_FALSE(holds(recovered(R"({"max_lost_epochs": 9})"), "lost training epochs"));  // unknown
  EXPECT_FALSE(holds(recovered("{}"), "exit code", 1));
  EXPECT_TRUE(holds(recovered(R"({"exit_code": 1})"), "exit code", 1));
  const char* hash = R"({"final_hash": {"file": "w", "is": "0123abcd"}})";
  EXPECT_TRUE(holds(recovered(hash), "final hash", 0, "0123abcd"));
  EXPECT_FALSE(holds(recovered(hash), "final hash", 0, "0123abce"));
  EXPECT_FALSE(holds(recovered(hash), "final hash", 0, ""));
}

TEST(FaultAccount, AFaultThatNeverHappenedFailsUnlessItIsRandom) {
  EXPECT_FALSE(holds(FaultReport(plan_of(kKill)), "fault 1"));
  EXPECT_TRUE(
      holds(FaultReport(plan_of(R"({"do": "kill", "at": {"rank": 1, "every_s": 9}})")), "fault 1"));
}

TEST(FaultAccount, ADeathWithoutALaterRoundIsNoRecovery) {
  FaultReport report(plan_of(kKill, R"({"max_recovery_s": 100})"));
  report.on_started(at(0), 1, 0);
  report.on_injected(at(5), 0, 1, "rank 1", {});
  EXPECT_FALSE(holds(report, "recovery"));
}

TEST(FaultAccount, AFaultWithinARoundNeedsNoRecovery) {
  FaultReport report(plan_of(R"({"do": "slow", "at": {"step": 1}, "for_s": 1})",
                             R"({"max_recovery_s": 1, "max_lost_steps": 0})"));
  report.on_started(at(0), 1, 0);
  report.on_injected(at(5), 0, 1, "rank 1", {});
  EXPECT_TRUE(holds(report, "recovery"));
  EXPECT_TRUE(holds(report, "lost steps"));
}

TEST(FaultAccount, TextAndJunit) {
  const FaultReport report = recovered(R"({"restarts": 0})");
  const std::vector<ExpectationResult> results = report.check_expectations(0, "");
  EXPECT_EQ(report_text(report, results),
            "cpprun: faults of p.json, seed 1\n"
            "  ok      fault 1: kill rank 1 at step 12: rank 1 in round 1, step 12; all workers "
            "running again after 0.500 s; lost steps: 2\n"
            "  ok      exit code: 0, expected 0\n"
            "  NOT OK  restarts: 1, expected 0\n"
            "cpprun: 2 held, 1 did not\n");
  const std::string xml = junit(report, results, 9);
  EXPECT_THAT(xml, HasSubstr("tests=\"3\" failures=\"1\""));
  EXPECT_THAT(xml,
              HasSubstr("name=\"restarts\" time=\"0.000\"><failure message=\"1, expected 0\"/>"));
}

TEST(FaultAccount, JunitIsValidXmlForAnyText) {
  const FaultReport report = recovered("{}");
  const std::string xml = junit(report, {{"a<b", false, "x & \"y\"\x01\x7f"}}, 1);
  EXPECT_THAT(xml, HasSubstr("name=\"a&lt;b\""));
  EXPECT_THAT(xml, HasSubstr("message=\"x &amp; &quot;y&quot;??\""));
}

TEST(FaultAccount, RejectsOrSkipsInvalidSummaries) {
  for (const char* bad :
       {R"({"held": true, "injected": [{}]})", R"({"held": true, "injected": [{"do": 1}]})"}) {
    EXPECT_FALSE(parse_summary(bad).ok()) << bad;
  }
  const Result<Summary> read = parse_summary(
      R"({"held": true, "hash": 1, "injected": [{"do": "kill", "recovery_s": "x", "lost_steps": []},
          {"do": "stop", "lost_epochs": 2}], "failed": [1, "two"]})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->hash, "");
  ASSERT_EQ(read->injections.size(), 2U);
  EXPECT_FALSE(read->injections[0].recovery_s || read->injections[0].lost_steps);
  EXPECT_EQ(read->injections[1].lost_epochs, 2);
  EXPECT_EQ(read->failed, std::vector<std::string>{"two"});
}

TEST(FaultAccount, ReadsAWrittenSummary) {
  const FaultReport report = recovered(R"({"restarts": 0})");
  const Summary summary = summarize(report, report.check_expectations(0, ""), "0123abcd");
  const Result<Summary> read = parse_summary(encode(summary));
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->is_held);
  EXPECT_EQ(read->hash, "0123abcd");
  ASSERT_EQ(read->injections.size(), 1U);
  EXPECT_EQ(read->injections[0].recovery_s, 0.5);
  EXPECT_EQ(read->injections[0].lost_steps, 2);
  EXPECT_EQ(read->failed, std::vector<std::string>{"restarts: 1, expected 0"});
  for (const char* bad : {"", "[]", "{}", R"({"held": 1})", R"({"held": true, "injected": [1]})",
                          R"({"held": true, "injected": 3})", R"({"held": true, "failed": "x"})"}) {
    static_cast<void>(parse_summary(bad));  // rejected or empty, without a crash
  }
}

}  // namespace
}  // namespace cpprun::faults

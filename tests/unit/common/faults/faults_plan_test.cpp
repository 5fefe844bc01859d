#include "common/faults/plan.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "common/faults/draw.hpp"
#include "common/limits/faults.hpp"

namespace cpprun::faults {
namespace {

Plan parsed(const std::string& json) {
  const Result<Plan> plan = parse_plan(json, "p.json");
  EXPECT_TRUE(plan.ok()) << plan.error().text;
  return plan ? *plan : Plan{};
}

std::string error_of(const std::string& json) {
  const Result<Plan> plan = parse_plan(json, "p.json");
  return plan ? "no error" : plan.error().text;
}

std::string error_of_fault(const std::string& fault) {
  return error_of("{\"plan\":[" + fault + "]}");
}

constexpr const char* kWhole = R"({"plan": [
  {"do": "kill", "at": {"rank": 1, "epoch": 3}},
  {"do": "kill", "at": {"rank": "any", "step": [10, 20], "phase": "saving", "attempt": 0}},
  {"do": "stop", "at": {"rank": 2, "after_s": [0.5, 2]}, "for_s": 1.5},
  {"do": "exit", "at": {"rank": 3, "epoch": 15, "round": 2}, "code": 13},
  {"do": "slow", "at": {"step": 4}, "for_s": 0.25, "times": 3},
  {"do": "throw", "at": {"phase": "starting"}},
  {"do": "disk-full", "at": {"after_s": 3}},
  {"do": "kill-agent", "at": {"node": "any", "every_s": 20}, "times": 2},
  {"do": "drop-coordinator", "at": {"node": 1, "after_s": 0}}],
  "seed": 7,
  "expect": {"exit_code": 1, "restarts": [3, 4], "max_recovery_s": 3, "max_lost_steps": 10,
    "max_lost_epochs": 1, "final_hash": {"file": "w.txt", "is": "0123abcd"}}})";

TEST(FaultPlan, ParsesEveryField) {
  const Plan plan = parsed(kWhole);
  ASSERT_EQ(plan.faults.size(), 9U);
  EXPECT_EQ(plan.seed, 7U);
  EXPECT_EQ(describe(plan.faults[0]), "kill rank 1 at training epoch 3");
  EXPECT_EQ(describe(plan.faults[1]), "kill any rank at step 10 to 20, attempt 0, phase saving");
  EXPECT_EQ(describe(plan.faults[2]), "stop rank 2 after 0.5 s to 2 s");
  EXPECT_EQ(plan.faults[2].lasts, seconds(1.5));
  EXPECT_EQ(plan.faults[3].exit_code, 13);
  EXPECT_EQ(plan.faults[4].times, 3);
  EXPECT_EQ(describe(plan.faults[7]), "kill-agent any node every 20 s on average");
  EXPECT_EQ(plan.faults[7].times, 2);
  EXPECT_EQ(plan.expect->exit_code, 1);
  EXPECT_EQ(plan.expect->restarts, (Span{3, 4}));
  EXPECT_EQ(plan.expect->recovery_max, seconds(3));
  EXPECT_EQ(plan.expect->final_hash->is, "0123abcd");
}

TEST(FaultPlan, SurvivesWritingAndReading) {
  const Plan plan = parsed(kWhole);
  EXPECT_EQ(parsed(encode(plan)), plan);
}

// Replaces every value of kWhole in turn: the parser reads the changed value, and none crashes it.
TEST(FaultPlan, NoValueIsIgnored) {
  using nlohmann::json;
  const Plan whole = parsed(kWhole);
  const json values = json::parse(kWhole).flatten();
  for (const auto& value : values.items()) {
    json changed = values;
    if (value.value().is_number()) {
      changed[value.key()] = value.value().get<double>() + 1;
      const Result<Plan> other = parse_plan(changed.unflatten().dump(), "p.json");
      EXPECT_FALSE(other && *other == whole) << value.key();
    }
    for (const json& wrong : {json(-1), json(1e18), json("x"), json("any"), json(true), json(),
                              json::array(), json::array({1, 2, 3}), json::object()}) {
      json broken = json::parse(kWhole);
      broken[json::json_pointer(value.key())] = wrong;
      const Result<Plan> other = parse_plan(broken.dump(), "p.json");
      if (!other) continue;
      EXPECT_TRUE(!(*other == whole) || wrong == value.value() || wrong.is_null()) << value.key();
      for (const Fault& fault : other->faults) EXPECT_FALSE(describe(fault).empty());
    }
  }
}

TEST(FaultPlan, AnErrorNamesFieldValueAndCure) {
  EXPECT_EQ(error_of("{"), "the fault plan p.json: it is no JSON");
  EXPECT_EQ(error_of("{}"),
            "the fault plan p.json: it has no list 'plan'; docs/reference/faults.md has examples");
  EXPECT_EQ(error_of_fault(R"({"do": "kil"})"),
            "the fault plan p.json: plan[0].do is \"kil\", but must be one of kill, stop, exit, "
            "throw, slow, kill-agent, drop-coordinator, disk-full");
  EXPECT_EQ(error_of_fault(R"({"do": "kill", "at": {"rnak": 1}})"),
            "the fault plan p.json: plan[0].at.rnak is no field of a plan; did you mean rank?");
  EXPECT_EQ(error_of_fault(R"({"do": "kill", "at": {"step": [9, 2]}})"),
            "the fault plan p.json: plan[0].at.step is a list, but must be a whole number from 0, "
            "or a range as [2, 9]");
  EXPECT_EQ(error_of_fault(R"({"do": "exit", "at": {"after_s": 1}})"),
            "the fault plan p.json: plan[0] is 'exit', which the program does itself: give it a "
            "step, an epoch or a phase");
}

TEST(FaultPlan, RejectsInvalidPlans) {
  for (const char* fault : {R"([])",
                            R"({"at": {}})",
                            R"({"do": 1})",
                            R"({"do": "kill", "at": 3})",
                            R"({"do": "kill", "at": {"rank": -1}})",
                            R"({"do": "kill", "at": {"rank": "some"}})",
                            R"({"do": "kill", "at": {"rank": 1.5}})",
                            R"({"do": "kill", "at": {"rank": 1e30}})",
                            R"({"do": "kill", "at": {"step": 18446744073709551615}})",
                            R"({"do": "kill", "at": {"step": 1, "after_s": 1}})",
                            R"({"do": "kill", "at": {"every_s": 0}})",
                            R"({"do": "kill", "at": {"after_s": -1}})",
                            R"({"do": "kill", "at": {"phase": "lunch"}})",
                            R"({"do": "kill", "code": 1})",
                            R"({"do": "kill", "at": {"node": 1}})",
                            R"({"do": "kill", "for_s": 1})",
                            R"({"do": "slow", "at": {"step": 1}})",
                            R"({"do": "exit", "at": {"step": 1}, "code": 256})",
                            R"({"do": "kill", "at": {"after_s": 1}, "times": 2})",
                            R"({"do": "kill-agent", "at": {"node": 1, "rank": 1}})",
                            R"({"do": "kill", "at": {"step": 1}, "times": 0})",
                            R"({"do": "kill", "at": {"every_s": 1, "round": 2}})"}) {
    EXPECT_EQ(error_of_fault(fault).rfind("the fault plan p.json: plan[0]", 0), 0U)
        << fault << ": " << error_of_fault(fault);
  }
  for (const char* expect : {R"({"exit_code": -1})", R"({"restart": 1})", R"({"final_hash": {}})",
                             R"({"final_hash": {"file": "a", "is": "XYZ"}})", "[]"}) {
    const std::string error = error_of(std::string(R"({"plan": [], "expect": )") + expect + "}");
    EXPECT_EQ(error.rfind("the fault plan p.json: expect", 0), 0U) << expect << ": " << error;
  }
}

// Plans with changed bytes: rejected, or the same after writing and reading them again.
TEST(FaultPlan, AcceptsOrRejectsAnyBytes) {
  std::mt19937 random(1);
  const std::string whole = kWhole;
  int kept = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = whole;
    for (int n = 0; n < 1 + i % 3; ++n) {
      const size_t at = random() % text.size();
      text[at] = i % 2 == 0 ? static_cast<char>(random()) : "0123456789,.[]{}\"e-"[random() % 19];
    }
    const Result<Plan> plan = parse_plan(text, "p.json");
    if (!plan) continue;
    ++kept;
    const Result<Plan> again = parse_plan(encode(*plan), "p.json");
    ASSERT_TRUE(again.ok()) << again.error().text << "\n" << text;
    ASSERT_EQ(*again, *plan) << text;
  }
  EXPECT_GT(kept, 100);
}

TEST(FaultPlan, RejectsDeepAndLargePlans) {
  EXPECT_NE(error_of(std::string(100'000, '[')), "no error");
  EXPECT_NE(error_of("{\"plan\": [" + std::string(200'000, '[') + std::string(200'000, ']') + "]}"),
            "no error");
  EXPECT_NE(error_of(std::string(limits::kFaultPlanBytes + 1, ' ')).find("1 MiB"),
            std::string::npos);
}

TEST(FaultPlan, ASeedResolvesRandomChoicesDeterministically) {
  const Plan plan = parsed(kWhole);
  EXPECT_EQ(drawn(plan, 3), drawn(plan, 3));
  std::set<int64_t> steps, ranks;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Plan settled = drawn(plan, seed);
    const Fault& fault = settled.faults[1];
    EXPECT_EQ(fault.step->from, fault.step->to);
    steps.insert(fault.step->from);
    ranks.insert(fault.rank->among(4));
    EXPECT_EQ(settled.faults[0].rank->among(4), 1);
  }
  EXPECT_EQ(steps.size(), 11U);  // 10 to 20
  EXPECT_EQ(*steps.begin(), 10);
  EXPECT_EQ(ranks, (std::set<int64_t>{0, 1, 2, 3}));
}

TEST(FaultPlan, GapsHaveTheirMean) {
  double sum = 0;
  constexpr int kMany = 10'000;
  for (int n = 0; n < kMany; ++n) sum += to_seconds(gap(5, 0, n, seconds(20)));
  EXPECT_NEAR(sum / kMany, 20, 1);
}

TEST(FaultPlan, ProgramsReceiveOnlyPlaceFaults) {
  const Plan plan = drawn(parsed(kWhole), 0);
  const std::string text = worker_text(plan, 4, 2);
  EXPECT_EQ(text.substr(0, text.find(';')), "ask:fault=0,rank=1,epoch=3");
  EXPECT_NE(text.find(";exit:fault=3,rank=3,epoch=15,round=2,code=13;"), std::string::npos) << text;
  EXPECT_NE(text.find(";slow:fault=4,step=4,ms=250;throw:fault=5,phase=starting;report"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("fault=6"), std::string::npos);
}

TEST(FaultPlan, DistinguishesTextFromFiles) {
  for (const char* words :
       {"kill:rank=1", ";kill:rank=1", ";;", "kill", "explode:rank=1", "kill:a=/x.json"}) {
    EXPECT_TRUE(is_inline(words)) << words;
  }
  for (const char* file : {"plan.json", "/tmp/p", "./p", "", "a/b:c"}) {
    EXPECT_FALSE(is_inline(file)) << file;
  }
}

}  // namespace
}  // namespace cpprun::faults

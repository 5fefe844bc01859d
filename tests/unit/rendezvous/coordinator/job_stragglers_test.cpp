// --stragglers: what a job does about slow ranks.
#include "rendezvous/observe/status.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::StopCause;

class JobStragglersTest : public JobTest {
 public:
  // Each node reports how long its two ranks compute in a step; ten reports of four steps.
  void report(const std::map<std::string, std::vector<int64_t>>& compute_us) {
    for (int i = 0; i < 10; ++i) {
      for (const auto& [name, times] : compute_us) {
        if (round_of(name) != job().round() || phase() != Phase::Running) return;
        sends(name, control::ComputeTimes{round_of(name), {4, 4}, times});
      }
    }
  }
  void rank_three_is_slow() { report({{"a", {20'000, 21'000}}, {"b", {20'000, 48'000}}}); }
  std::string note_of(const std::string& event) const {
    for (const LogEvent& note : notes) {
      if (note.event == event) return note.text;
    }
    return "";
  }
};

TEST_F(JobStragglersTest, ASlowRankIsNamedAndNothingElseHappens) {
  player("b").facts.knows_slow_ranks = true;
  a_and_b_run();
  rank_three_is_slow();
  EXPECT_EQ(
      note_of("slow_rank").find("slow: rank 3 on b computes 48.0 ms a step, the median rank "), 0u)
      << note_of("slow_rank");
  const auto* report = received<control::SlowRank>("b");
  ASSERT_NE(report, nullptr);
  EXPECT_EQ(report->rank, 3);
  EXPECT_TRUE(report->is_slow);
  EXPECT_EQ(report->action, "");
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_NE(status_json(core).find("\"slow_ranks\": ["), std::string::npos);
  EXPECT_NE(status_json(core).find("\"compute_us\": 48000"), std::string::npos)
      << status_json(core);
  ASSERT_NE(job().hosts().find("b"), nullptr);
  EXPECT_EQ(job().hosts().find("b")->slow, 1);
  EXPECT_EQ(job().hosts().find("b")->faults(), 0) << "slow is no fault";
}

TEST_F(JobStragglersTest, ExcludedHostsAreReplacedBySparesWithoutACharge) {
  job_spec.stragglers = StragglerPolicy::Exclude;
  a_and_b_run();
  join("c");
  rank_three_is_slow();
  expect_stop("a", StopCause::Exclusion);
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_assignment("c", 2, 1, 4);
  EXPECT_EQ(job().budget().used(), 0);
  EXPECT_TRUE(job().hosts().is_excluded("b"));
  EXPECT_NE(job().hosts().find("b")->reason.find("slow: rank 3"), std::string::npos);
  EXPECT_TRUE(job().slow_ranks().empty()) << "of the round before";
}

TEST_F(JobStragglersTest, WithoutASpareTheSlowNodeStays) {
  job_spec.stragglers = StragglerPolicy::Exclude;
  a_and_b_run();
  rank_three_is_slow();
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_NE(note_of("slow_rank").find("the job cannot continue without this node"),
            std::string::npos);
  EXPECT_EQ(received<control::ShutdownRequest>("b"), nullptr);
}

TEST_F(JobStragglersTest, ADrainedNodeIsAskedToSaveAndLeave) {
  nodes(1, 2);
  job_spec.stragglers = StragglerPolicy::Drain;
  a_and_b_run();
  rank_three_is_slow();
  const auto* request = received<control::ShutdownRequest>("b");
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(request->saves);
  EXPECT_TRUE(request->others_continue);
  EXPECT_EQ(received<control::ShutdownRequest>("a"), nullptr);
}

TEST_F(JobStragglersTest, OfTwoSlowNodesOneStaysIfTheJobNeedsIt) {
  nodes(2, 3);
  job_spec.stragglers = StragglerPolicy::Drain;
  for (const char* name : {"a", "b", "c"}) join(name);
  passes(limits::kLastCall);
  ASSERT_EQ(phase(), Phase::Running);
  report({{"a", {20'000, 20'000}}, {"b", {48'000, 20'000}}, {"c", {48'000, 20'000}}});
  const bool is_b_asked = received<control::ShutdownRequest>("b") != nullptr;
  const bool is_c_asked = received<control::ShutdownRequest>("c") != nullptr;
  EXPECT_TRUE(is_b_asked != is_c_asked) << "neither agent has confirmed yet that it leaves";
}

TEST_F(JobStragglersTest, ReportsOutOfRangeAreIgnored) {
  a_and_b_run();
  const RoundNumber round = round_of("a");
  for (int i = 0; i < 50; ++i) {
    sends("a", control::ComputeTimes{round, {4, 4}, {20'000}});
    sends("a", control::ComputeTimes{round, {4, 4, 4}, {1, 1, 1}});
    sends("a", control::ComputeTimes{RoundNumber(99), {4, 4}, {1, 1}});
    sends("b", control::ComputeTimes{round, {4, 4}, {20'000, 48'000}});
  }
  EXPECT_EQ(note_of("slow_rank"), "") << "two ranks have no median";
}

}  // namespace
}  // namespace cpprun::test

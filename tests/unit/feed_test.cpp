// What the dashboard is told.
#include <nlohmann/json.hpp>

#include "common/limits/dashboard.hpp"
#include "rendezvous/core/feed.hpp"
#include "tests/unit/support_job.hpp"

namespace cpprun::test {
namespace {

using nlohmann::json;

class Feed : public JobTest {
 public:
  json state() { return json::parse(dashboard_state(core, chronicle)).at("jobs").at(run_id); }
  json progress() { return json::parse(dashboard_progress(core)).at("jobs"); }
  void watch(Duration lasts) {
    call([&](Effects& e) { core.watch(lasts, e); });
  }
};

TEST_F(Feed, NodesComeInTheOrderOfTheirRanks) {
  nodes(2, 2);
  join("z");
  join("b");
  all({"z", "b"}, &JobTest::says_started);
  join("a-spare");
  const json rows = state().at("nodes");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0], json({"b", "running", 2, "default", "10.0.0.9", 0, 0}));
  EXPECT_EQ(rows[1], json({"z", "running", 2, "default", "10.0.0.9", 1, 2}));
  EXPECT_EQ(rows[2], json({"a-spare", "idle", 2, "default", "10.0.0.9", nullptr, nullptr}));
}

TEST_F(Feed, ABrokenRoundIsTold) {
  a_and_b_run();
  WorkerEnd end;
  end.exit_code = 3;
  end.rank = Rank(2);
  end.last_lines = {"<script>alert(1)</script>", "\xff is no UTF-8"};
  says("b", control::Failed{round_of("b"), end});
  all({"a", "b"}, &JobTest::says_stopped);
  const json rounds = state().at("rounds");
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].at("cause"), "failure");
  EXPECT_EQ(rounds[0].at("class"), "user_error");
  EXPECT_EQ(rounds[0].at("last_lines")[0], "<script>alert(1)</script>") << "the page escapes";
  EXPECT_TRUE(rounds[1].at("started_ms").is_null());
}

TEST_F(Feed, TheOutcomeIsTold) {
  terms.max_restarts = 0;
  a_and_b_run();
  EXPECT_TRUE(state().at("outcome").is_null());
  says_failed("a", 9);
  all({"a", "b"}, &JobTest::says_stopped);
  EXPECT_EQ(state().at("outcome"), "failure");
  EXPECT_NE(state().at("verdict").get<std::string>().find("exited with code 9"), std::string::npos);
}

TEST_F(Feed, OnlyWhoUnderstandsIsAskedHowFarItIs) {
  player("a").facts.tells_progress = true;
  a_and_b_run();
  watch(10s);
  ASSERT_TRUE(heard<control::Watch>("a"));
  EXPECT_EQ(heard<control::Watch>("a")->lasts, 10s);
  EXPECT_FALSE(heard<control::Watch>("b"));
}

TEST_F(Feed, ProgressIsShownByGlobalRank) {
  a_and_b_run();
  EXPECT_EQ(progress(), json::object()) << "nobody has told anything";
  says("b", control::Progress{round_of("b"), {70, 71}, {1000, -1}});
  EXPECT_EQ(progress().at("job").at("steps"), json({-1, -1, 70, 71}));
  EXPECT_EQ(progress().at("job").at("step_us"), json({-1, -1, 1000, -1}));
}

TEST_F(Feed, SenselessProgressCountsAsNothing) {
  a_and_b_run();
  std::vector<int64_t> many(limits::kProgressWorkers + 1, 5);
  says("a", control::Progress{round_of("a"), many, {}});
  says("b", control::Progress{RoundNumber(99), {5, 5}, {}});
  EXPECT_EQ(progress(), json::object());
  says("a", control::Progress{round_of("a"), std::vector<int64_t>(500, 5), {}});
  EXPECT_EQ(progress().at("job").at("steps"), json({5, 5, -1, -1})) << "it has two workers";
  says_failed("a");
  all({"a", "b"}, &JobTest::says_stopped);
  EXPECT_EQ(progress(), json::object()) << "of an older round";
}

}  // namespace
}  // namespace cpprun::test

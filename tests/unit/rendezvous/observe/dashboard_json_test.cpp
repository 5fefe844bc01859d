// The JSON for the dashboard.
#include <nlohmann/json.hpp>

#include "common/limits/dashboard.hpp"
#include "rendezvous/observe/dashboard_json.hpp"
#include "rendezvous/observe/job_metrics.hpp"
#include "rendezvous/observe/status.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using nlohmann::json;

class DashboardJsonTest : public JobTest {
 public:
  json state() { return json::parse(dashboard_state(core, job_history)).at("jobs").at(run_id); }
  json progress() { return json::parse(dashboard_progress(core)).at("jobs"); }
  json steps() {
    history.update(core);
    return json::parse(dashboard_steps(history)).at("jobs");
  }
  json workers() { return json::parse(dashboard_workers(core)).at("jobs"); }
  json status_of(const std::string& node) {
    const json job = json::parse(status_json(core)).at("jobs").at(run_id);
    for (const json& each : job.at("nodes")) {
      if (each.at("name") == node) return each;
    }
    return nullptr;
  }
  json lines(int64_t rank) { return json::parse(dashboard_lines(core, {run_id, rank})); }
  void tail(int64_t rank) {
    call([&](Effects& e) { core.tail({run_id, rank}, 10s, e); });
  }
  StepHistory history;
  void watch(Duration lasts) {
    call([&](Effects& e) { core.watch(lasts, e); });
  }
};

TEST_F(DashboardJsonTest, NodesAreSortedByRank) {
  nodes(2, 2);
  join("z");
  join("b");
  all({"z", "b"}, &JobTest::sends_started);
  join("a-spare");
  const json rows = state().at("nodes");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0], json({"b", "running", 2, "default", "10.0.0.9", 0, 0}));
  EXPECT_EQ(rows[1], json({"z", "running", 2, "default", "10.0.0.9", 1, 2}));
  EXPECT_EQ(rows[2], json({"a-spare", "idle", 2, "default", "10.0.0.9", nullptr, nullptr}));
}

TEST_F(DashboardJsonTest, ShowsTheBudgets) {
  job_spec.max_hangs = 2;
  job_spec.max_node_losses = 9;
  job_spec.restart_backoff = 30s;
  a_and_b_run();
  for (int i = 0; i < 2; ++i) all({"b", "a"}, &JobTest::sends_stopped);
  EXPECT_EQ(state().at("node_losses"), json({2, 9}));
  EXPECT_EQ(state().at("hang_restarts"), json({0, 2}));
  const json job = json::parse(status_json(core)).at("jobs").at(run_id);
  EXPECT_EQ(job.at("node_losses_used"), 2);
  EXPECT_EQ(job.at("max_node_losses"), 9);
  EXPECT_EQ(job.at("max_hangs"), 2);
  EXPECT_EQ(job.at("restart_delay_s"), 30.0);
}

TEST_F(DashboardJsonTest, LossesWithoutALimitAreNull) {
  a_and_b_run();
  EXPECT_TRUE(state().at("node_losses").is_null());
  const json job = json::parse(status_json(core)).at("jobs").at(run_id);
  EXPECT_TRUE(job.at("max_node_losses").is_null());
}

TEST_F(DashboardJsonTest, ShowsTheGoodputThatTheFirstNodeReports) {
  a_and_b_run();
  EXPECT_TRUE(state().at("goodput").is_null());
  std::vector<Duration> spent(kGoodputPhases);
  spent[static_cast<size_t>(GoodputPhase::Waiting)] = 1s;
  spent[static_cast<size_t>(GoodputPhase::Training)] = 3s;
  const bool is_a = assignment("a").group_rank == 0;
  sends(is_a ? "b" : "a", control::TimeSpent{spent});
  EXPECT_TRUE(state().at("goodput").is_null()) << "another node's";
  sends(is_a ? "a" : "b", control::TimeSpent{spent});
  EXPECT_EQ(state().at("goodput"), 0.75);
  const std::string id = "{run_id=\"" + run_id + "\"";
  const std::string metrics = job_metrics(core, job_history);
  EXPECT_NE(metrics.find("cpprun_job_time_seconds_total" + id + ",phase=\"training\"} 3\n"),
            std::string::npos);
  EXPECT_NE(metrics.find("cpprun_job_submissions" + id + "} 1\n"), std::string::npos);
}

TEST_F(DashboardJsonTest, ShowsTheNumberOfSubmissions) {
  a_and_b_run();
  EXPECT_EQ(state().at("submissions"), 1);
  const std::vector<Duration> spent(kGoodputPhases, 1s);
  for (const char* name : {"a", "b"}) sends(name, control::TimeSpent{spent, 3});
  EXPECT_EQ(state().at("submissions"), 3);
  const std::string metric = "cpprun_job_submissions{run_id=\"" + run_id + "\"} 3\n";
  EXPECT_NE(job_metrics(core, job_history).find(metric), std::string::npos);
  for (const char* name : {"a", "b"}) sends(name, control::TimeSpent{spent, -3});
  EXPECT_EQ(state().at("submissions"), 1);
}

TEST_F(DashboardJsonTest, IgnoresATimeOutOfRange) {
  a_and_b_run();
  for (const char* name : {"a", "b"}) {
    sends(name, control::TimeSpent{{1s, 2s}});
    sends(name, control::TimeSpent{std::vector<Duration>(kGoodputPhases, -1s)});
    sends(name, control::TimeSpent{std::vector<Duration>(kGoodputPhases + 1)});
    // Their sum would exceed a Duration.
    sends(name,
          control::TimeSpent{std::vector<Duration>(kGoodputPhases, limits::kWireDurationMax)});
  }
  EXPECT_EQ(job_metrics(core, job_history).find("phase=\"training\""), std::string::npos);
}

TEST_F(DashboardJsonTest, ShowsABrokenRound) {
  a_and_b_run();
  WorkerExit end;
  end.exit_code = 3;
  end.rank = Rank(2);
  end.error.emplace().message = "ModuleNotFoundError: No module named 'nosuch'";
  end.last_lines = {"<script>alert(1)</script>", "\xff is no UTF-8"};
  sends("b", control::Failed{round_of("b"), end});
  all({"a", "b"}, &JobTest::sends_stopped);
  const json rounds = state().at("rounds");
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].at("cause"), "failure");
  EXPECT_EQ(rounds[0].at("class"), "user_error");
  EXPECT_EQ(rounds[0].at("error"), "ModuleNotFoundError: No module named 'nosuch'");
  EXPECT_NE(rounds[0].at("hint").get<std::string>().find("nosuch"), std::string::npos);
  EXPECT_EQ(rounds[0].at("last_lines")[0], "<script>alert(1)</script>") << "the page escapes";
  EXPECT_TRUE(rounds[1].at("started_ms").is_null());
}

TEST_F(DashboardJsonTest, ShowsTheOutcome) {
  job_spec.max_restarts = 0;
  a_and_b_run();
  EXPECT_TRUE(state().at("outcome").is_null());
  sends_failed("a", 9);
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(state().at("outcome"), "failure");
  EXPECT_NE(state().at("failure_summary").get<std::string>().find("exited with code 9"),
            std::string::npos);
}

TEST_F(DashboardJsonTest, AsksOnlySupportingAgentsForProgress) {
  player("a").facts.reports_progress = true;
  a_and_b_run();
  watch(10s);
  ASSERT_TRUE(received<control::Watch>("a"));
  EXPECT_EQ(received<control::Watch>("a")->lasts, 10s);
  EXPECT_FALSE(received<control::Watch>("b"));
}

TEST_F(DashboardJsonTest, ShowsProgressByGlobalRank) {
  a_and_b_run();
  EXPECT_EQ(progress(), json::object()) << "no agent has reported anything";
  sends("b", control::Progress{round_of("b"), {70, 71}, {1000, -1}});
  EXPECT_EQ(progress().at("job").at("steps"), json({-1, -1, 70, 71}));
  EXPECT_EQ(progress().at("job").at("step_us"), json({-1, -1, 1000, -1}));
}

TEST_F(DashboardJsonTest, IgnoresInvalidProgress) {
  a_and_b_run();
  std::vector<int64_t> many(limits::kProgressWorkers + 1, 5);
  sends("a", control::Progress{round_of("a"), many, {}});
  sends("b", control::Progress{RoundNumber(99), {5, 5}, {}});
  EXPECT_EQ(progress(), json::object());
  sends("a", control::Progress{round_of("a"), std::vector<int64_t>(500, 5), {}});
  EXPECT_EQ(progress().at("job").at("steps"), json({5, 5, -1, -1})) << "it has two workers";
  sends_failed("a");
  all({"a", "b"}, &JobTest::sends_stopped);
  sends("a", control::Progress{RoundNumber(1), {7, 7}, {}});
  EXPECT_EQ(progress().at("job").at("steps"), json({5, 5, -1, -1})) << "of an older round";
}

TEST_F(DashboardJsonTest, KeepsTheStepsOfAFailedJob) {
  job_spec.max_restarts = 0;
  a_and_b_run();
  const RoundNumber round = round_of("a");
  sends_failed("a", 9);
  now = now + 3s;
  sends("a", control::Progress{round, {70, 71}, {1000, 3000}});
  const int64_t reported_ms = now.nanoseconds() / 1'000'000;
  all({"a", "b"}, &JobTest::sends_stopped);
  now = now + 60s;
  EXPECT_EQ(state().at("outcome"), "failure");
  EXPECT_EQ(progress().at("job").at("steps"), json({70, 71, -1, -1}));
  EXPECT_EQ(progress().at("job").at("at_ms"), reported_ms);
  EXPECT_EQ(steps().at("job").at(0).at(0), reported_ms) << "not when somebody looked";
}

TEST_F(DashboardJsonTest, ListsTheProcessesOfTheRanks) {
  a_and_b_run();
  EXPECT_EQ(workers(), json::object()) << "no node has reported any";
  EXPECT_EQ(status_of("b").at("pids"), json::array());
  sends("b", control::WorkerProcesses{round_of("b"), {501, 502}, {70, -1}, "/logs/attempt_0"});
  const json first = {2, 501, 70, "/logs/attempt_0/0"};
  const json second = {3, 502, -1, "/logs/attempt_0/1"};
  EXPECT_EQ(workers().at("job").at("ranks"), json({first, second}));
  EXPECT_EQ(workers().at("job").at("round"), round_of("b").value);
  EXPECT_EQ(status_of("b").at("pids"), json({501, 502}));
  EXPECT_EQ(status_of("b").at("log_dir"), "/logs/attempt_0");
  sends("a", control::WorkerProcesses{round_of("a"), {0, 601}, {}, ""});
  EXPECT_EQ(workers().at("job").at("ranks")[0], json({1, 601, -1, ""}));
}

TEST_F(DashboardJsonTest, IgnoresInvalidProcesses) {
  a_and_b_run();
  sends("a", control::WorkerProcesses{round_of("a"), {1, 2, 3}, {}, ""});
  sends("a", control::WorkerProcesses{round_of("a"), {1, 2}, {1, 2, 3}, ""});
  sends("a", control::WorkerProcesses{
                 round_of("a"), {1, 2}, {}, std::string(limits::kLogPathBytes + 1, 'x')});
  sends("a", control::WorkerProcesses{RoundNumber(99), {1, 2}, {}, ""});
  EXPECT_EQ(workers(), json::object());
  EXPECT_EQ(status_of("a").at("pids"), json::array());
}

TEST_F(DashboardJsonTest, ForgetsTheProcessesOfAnEarlierRound) {
  a_and_b_run();
  sends("a", control::WorkerProcesses{round_of("a"), {601, 602}, {}, "/logs"});
  sends_failed("a");
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(workers(), json::object()) << "of the round before";
  EXPECT_EQ(status_of("a").at("log_dir"), "");
}

TEST_F(DashboardJsonTest, ListsTheFirstRanksOnly) {
  player("a").facts.nproc = player("b").facts.nproc = 200;
  a_and_b_run();
  const std::vector<int64_t> pids(200, 7);
  for (const char* name : {"a", "b"}) {
    sends(name, control::WorkerProcesses{round_of(name), pids, {}, ""});
  }
  const json ranks = workers().at("job").at("ranks");
  ASSERT_EQ(ranks.size(), limits::kRanksListed);
  EXPECT_EQ(ranks.back()[0], limits::kRanksListed - 1);
}

TEST_F(DashboardJsonTest, RemembersStepsForLaterReaders) {
  a_and_b_run();
  EXPECT_EQ(steps(), json::object());
  sends("a", control::Progress{round_of("a"), {70, 71}, {1000, 3000}});
  sends("b", control::Progress{round_of("b"), {69, -1}, {2000, -1}});
  const json one = steps().at("job").at(0);
  EXPECT_EQ(one.at(1), round_of("a").value);
  EXPECT_EQ(json(one.begin() + 2, one.end()), json::array({71, 69, 2000, 3000, 1})) << one;
  EXPECT_EQ(steps().at("job").size(), 1U) << "nothing is new";
  for (int64_t step = 0; step < 2000; ++step) {
    sends("b", control::Progress{round_of("b"), {100 + step}, {}});
    history.update(core);
  }
  EXPECT_EQ(steps().at("job").size(), limits::kStepPoints);
  EXPECT_EQ(steps().at("job").back().at(2), 2099);
}

TEST_F(DashboardJsonTest, MarksRanksWithoutProgress) {
  const StepPoint nothing = point_of({RoundNumber(1), {}, {-1, -1}, {-1, -1}});
  EXPECT_EQ(std::pair(nothing.step, nothing.last), std::pair(int64_t{-1}, int64_t{-1}));
  EXPECT_FALSE(nothing.median_us || nothing.slowest_us);
  const StepPoint even = point_of({RoundNumber(1), {}, {}, {40, 10, 30, 20}});
  EXPECT_EQ(even.median_us, 20) << "the lower of the two in the middle, as the page has it";
  EXPECT_EQ(even.slowest_rank, 0);
}

TEST_F(DashboardJsonTest, AsksTheNodeOfARankForLogLines) {
  player("b").facts.reports_log_lines = true;
  a_and_b_run();
  tail(0);
  EXPECT_FALSE(received<control::LogTailRequest>("a")) << "it would not understand";
  tail(3);
  ASSERT_TRUE(received<control::LogTailRequest>("b"));
  EXPECT_EQ(received<control::LogTailRequest>("b")->local_rank, 1);
  tail(4);
  tail(-1);
  EXPECT_EQ(lines(4).at("why"), "no node has this rank now");
  EXPECT_EQ(lines(0).at("why"), "the agent of its node is older and sends no lines");
  EXPECT_EQ(lines(3).at("why"), "waiting for its node");
}

TEST_F(DashboardJsonTest, ShowsLogLinesOfTheRequestedRank) {
  player("b").facts.reports_log_lines = true;
  a_and_b_run();
  sends("b", control::LogLines{round_of("b"), 1, true, {"<b>", "\xff"}, {"oh"}});
  EXPECT_EQ(lines(3).at("out").at(0), "<b>") << "the page shows it as text";
  EXPECT_EQ(lines(3).at("err"), json({"oh"}));
  EXPECT_EQ(lines(3).at("why"), "");
  EXPECT_EQ(lines(2).at("out"), json::array());
  sends("b", control::LogLines{round_of("b"), 1, false, {}, {}});
  EXPECT_NE(lines(3).at("why").get<std::string>().find("--tee 3"), std::string::npos);
  sends("b", control::LogLines{RoundNumber(99), 1, true, {"of another round"}, {}});
  EXPECT_EQ(lines(3).at("out"), json::array());
}

TEST_F(DashboardJsonTest, IgnoresInvalidLogLines) {
  player("b").facts.reports_log_lines = true;
  a_and_b_run();
  const RoundNumber round = round_of("b");
  sends("b", control::LogLines{round, 7, true, {"of no worker"}, {}});
  sends("b",
        control::LogLines{round, 1, true, std::vector<std::string>(limits::kTailLines + 1), {}});
  sends("b",
        control::LogLines{round, 1, true, {}, {std::string(limits::kLineBytesReported + 1, 'x')}});
  EXPECT_EQ(lines(3).at("why"), "waiting for its node");
}

}  // namespace
}  // namespace cpprun::test

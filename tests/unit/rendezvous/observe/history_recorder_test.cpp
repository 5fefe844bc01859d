// The history of a job's rounds, and its form in /metrics.
#include <algorithm>
#include <csignal>

#include "common/limits/dashboard.hpp"
#include "rendezvous/observe/history_recorder.hpp"
#include "rendezvous/observe/job_metrics.hpp"
#include "rendezvous/observe/prometheus.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

class HistoryRecorder : public JobTest {
 public:
  const JobHistory& record() { return *job_history.of(run_id); }
  const RoundRecord& round(size_t from_the_end = 0) {
    return record().rounds().at(record().rounds().size() - 1 - from_the_end);
  }
  std::string metrics() { return job_metrics(core, job_history); }
  void fails_and_all_stop(const std::string& name, Duration stopping = {}) {
    sends_failed(name, 3);
    passes(stopping);
    all({"a", "b"}, &JobTest::sends_stopped);
  }
};

TEST_F(HistoryRecorder, RecordsARoundFromFormingToItsEnd) {
  join("a");
  passes(2s);
  const Instant formed = now;
  join("b");
  passes(1s);
  all({"a", "b"}, &JobTest::sends_started);
  EXPECT_EQ(round().nodes, 2U);
  EXPECT_EQ(round().workers, 4);
  EXPECT_EQ(round().formed_at, formed);
  EXPECT_EQ(round().started_at, formed + 1s);
  EXPECT_FALSE(round().stopped_at);
  passes(7s);
  all({"a", "b"}, &JobTest::sends_done);
  EXPECT_EQ(round().over_at, formed + 8s);
  EXPECT_FALSE(round().stopped_at) << "it ended well";
  EXPECT_FALSE(round().failure);
}

TEST_F(HistoryRecorder, RecordsAFailureWithItsClassAndTimesTheRecovery) {
  a_and_b_run();
  const Instant failed = now;
  fails_and_all_stop("b", 400ms);  // and the next round has formed
  ASSERT_EQ(record().rounds().size(), 2U);
  EXPECT_EQ(round(1).stopped_at, failed);
  EXPECT_EQ(round(1).over_at, failed + 400ms);
  EXPECT_EQ(round(1).cause, control::StopCause::Failure);
  EXPECT_EQ(round(1).failure, FailureClass::UserError);
  EXPECT_NE(round(1).root_cause.find("on b) exited with code 3"), std::string::npos);
  EXPECT_EQ(record().recoveries().count(), 0) << "its workers do not run yet";
  passes(200ms);
  sends_started("a");
  EXPECT_EQ(record().recoveries().count(), 0) << "not all";
  sends_started("b");
  EXPECT_EQ(record().recoveries().count(), 1);
  EXPECT_DOUBLE_EQ(record().recoveries().sum_s, 0.6);
  EXPECT_EQ(record().recoveries().counts.at(3), 1) << "0.5 to 1 s";
}

TEST_F(HistoryRecorder, ARecoverySpansRoundsThatNeverRan) {
  a_and_b_run();
  fails_and_all_stop("a", 1s);
  fails_and_all_stop("a", 1s);
  all({"a", "b"}, &JobTest::sends_started);
  EXPECT_EQ(record().recoveries().count(), 1);
  EXPECT_DOUBLE_EQ(record().recoveries().sum_s, 2);
  EXPECT_EQ(record().failures().at(FailureClass::UserError), 2);
}

TEST_F(HistoryRecorder, ALostNodeHasItsOwnFailureClass) {
  a_and_b_run();
  dies("b");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  EXPECT_EQ(round().failure, FailureClass::LostNode);
  EXPECT_EQ(round().cause, control::StopCause::NodeLost);
  EXPECT_NE(metrics().find("cpprun_job_failures_total{run_id=\"job\",class=\"lost_node\"} 1\n"),
            std::string::npos);
}

TEST_F(HistoryRecorder, RecordsAreBounded) {
  nodes(1, 1);
  job_spec.max_restarts = 1000;
  join("a");
  WorkerExit end;
  end.exit_code = 1;
  end.last_lines.assign(40, std::string(405, 'x'));
  const size_t many = limits::kRoundsReported + 20;
  for (size_t i = 0; i < many; ++i) {
    sends_started("a");
    sends("a", control::Failed{round_of("a"), end});
    sends_stopped("a");
  }
  EXPECT_EQ(record().rounds_formed(), static_cast<int64_t>(many + 1));
  EXPECT_EQ(record().rounds().size(), limits::kRoundsReported);
  EXPECT_EQ(round(1).last_lines.size(), limits::kLinesReported);
  EXPECT_EQ(round(1).last_lines.front().size(), limits::kLineBytesReported);
  const auto has_lines = [](const RoundRecord& r) { return !r.last_lines.empty(); };
  EXPECT_LE(std::count_if(record().rounds().begin(), record().rounds().end(), has_lines),
            static_cast<ptrdiff_t>(limits::kRoundsWithLines));
}

TEST_F(HistoryRecorder, ARestartedJobHasANewHistory) {
  a_and_b_run();
  all({"a", "b"}, &JobTest::sends_done);
  all({"a", "b"}, &JobTest::acks);
  all({"a", "b"}, &JobTest::dies);
  EXPECT_EQ(record().rounds().size(), 1U) << "what was decided is remembered";
  join("c");
  EXPECT_TRUE(record().rounds().empty());
}

TEST_F(HistoryRecorder, MetricsShowTheStateOfAJob) {
  has("a", {300, 200});
  a_and_b_run();
  fails_and_all_stop("b");
  join("spare");
  const std::string text = metrics();
  for (const char* line :
       {"cpprun_job_phase{run_id=\"job\",phase=\"running\"} 1\n",
        "cpprun_job_phase{run_id=\"job\",phase=\"waiting_for_nodes\"} 0\n",
        "cpprun_job_round{run_id=\"job\"} 2\n", "cpprun_job_rounds_total{run_id=\"job\"} 2\n",
        "cpprun_job_nodes{run_id=\"job\",state=\"starting\"} 2\n",
        "cpprun_job_nodes{run_id=\"job\",state=\"idle\"} 1\n",
        "cpprun_job_world_size{run_id=\"job\"} 4\n",
        "cpprun_job_restarts_total{run_id=\"job\",after=\"failure\"} 1\n",
        "cpprun_job_restarts_left{run_id=\"job\",after=\"failure\"} 2\n",
        "cpprun_job_restarts_left{run_id=\"job\",after=\"hang\"} 3\n",
        "cpprun_job_stops_total{run_id=\"job\",cause=\"failure\"} 1\n",
        "cpprun_job_failures_total{run_id=\"job\",class=\"user_error\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_EQ(text.find("cpprun_job_outcome{"), std::string::npos) << "nothing is decided";
}

TEST(Prometheus, NoValueBreaksThePage) {
  prometheus::Text text;
  text.family("x", "gauge", "Help.");
  text.series({{"job", "a\"\\\n\xff%"}}, 1);
  text.part("_sum", {}, 0.25);
  EXPECT_EQ(text.take(),
            "# HELP x Help.\n# TYPE x gauge\nx{job=\"a\\\"\\\\%0A%FF%25\"} 1\nx_sum 0.25\n");
}

}  // namespace
}  // namespace cpprun::test

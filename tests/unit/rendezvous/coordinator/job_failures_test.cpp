// The first failure over all nodes and their clocks, and repeated failures at startup.
#include "common/limits/agent.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

class Failures : public JobTest {
 public:
  // The clock of node b is this far ahead of the coordinator's.
  static constexpr Duration kAhead = 1h;

  Instant clock_of(const std::string& name) const { return name == "b" ? now + kAhead : now; }
  // A worker of this node ended this long ago.
  WorkerExit ended(const std::string& name, Duration ago, int exit_code = 1) {
    WorkerExit end;
    end.rank = Rank(assignment(name).base_rank);
    end.exit_code = exit_code;
    end.ended_at = clock_of(name) - ago;
    end.started_at = end.ended_at - 2s;
    return end;
  }
  void fails(const std::string& name, const WorkerExit& end) {
    sends(name, control::Failed{round_of(name), end, false, "", "", clock_of(name)});
  }
  void stops_with(const std::string& name, const WorkerExit& end) {
    control::Stopped stopped{round_of(name), 40'000};
    stopped.failure = end;
    sends(name, stopped);
  }
  const control::JobResult& decided() { return *received<control::JobResult>("a"); }
  void run_without_restarts() {
    job_spec.max_restarts = 0;
    a_and_b_run();
  }
};

TEST_F(Failures, TheFirstOnOneClockIsTheRootCauseThoughReportedLast) {
  run_without_restarts();
  fails("b", ended("b", 10ms));
  fails("a", ended("a", 20ms, 7));
  all({"a", "b"}, &JobTest::sends_stopped);
  ASSERT_TRUE(decided().root_cause);
  EXPECT_EQ(decided().root_cause->node, "a");
  EXPECT_EQ(decided().root_cause->end.exit_code, 7);
  EXPECT_EQ(decided().world_size, 4);
  EXPECT_EQ(decided().failure_summary,
            "rank 0 (pid 0, on a) exited with code 7; restarts used: 0 of 0");
}

TEST_F(Failures, TheFirstIsFoundWhenItsClockIsAhead) {
  run_without_restarts();
  fails("a", ended("a", 10ms));
  fails("b", ended("b", 20ms));
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(decided().root_cause->node, "b");
}

TEST_F(Failures, AFailureReportedOnlyWithStoppedIsOrderedByClock) {
  job_spec.max_restarts = 0;
  for (const char* name : {"a", "b"}) player(name).facts.clock_domain = "one machine";
  run_without_restarts();
  fails("a", ended("a", 10ms));
  stops_with("b", ended("a", 30ms, 5));
  sends_stopped("a");
  EXPECT_EQ(decided().root_cause->end.exit_code, 5);
}

TEST_F(Failures, AFailureOnAnUnknownClockYields) {
  run_without_restarts();
  fails("b", ended("b", 10ms, 5));
  stops_with("a", ended("a", 30ms));
  sends_stopped("b");
  EXPECT_EQ(decided().root_cause->end.exit_code, 5);
}

TEST_F(Failures, ALostPeerErrorYieldsToACause) {
  run_without_restarts();
  WorkerExit lost = ended("a", 30ms);
  lost.last_lines = {"RuntimeError: Connection closed by peer"};
  fails("a", lost);
  stops_with("b", ended("b", 1ms, 5));
  sends_stopped("a");
  EXPECT_EQ(decided().root_cause->end.exit_code, 5);
}

TEST_F(Failures, ALateMessageDoesNotShiftAClock) {
  run_without_restarts();
  fails("b", ended("b", 20ms));
  control::Failed late{round_of("b"), ended("b", 15ms)};
  late.sent_at = clock_of("b") - 10s;  // it was in flight for 10 s
  sends("b", late);
  fails("a", ended("a", 10ms));
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(decided().root_cause->node, "b");
}

TEST_F(Failures, OnOneClockArrivalTimesDoNotCount) {
  job_spec.max_restarts = 0;
  for (const char* name : {"a", "b"}) player(name).facts.clock_domain = "one machine";
  a_and_b_run();
  control::Failed slow{round_of("b"), ended("a", 20ms, 5)};
  slow.sent_at = now - 1min;
  fails("a", ended("a", 10ms));
  sends("b", slow);
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(decided().root_cause->node, "b");
}

TEST_F(Failures, AcceptsTimesOutOfRange) {
  run_without_restarts();
  for (int64_t ns : {INT64_MIN, INT64_MAX}) {
    WorkerExit end = ended("b", 0ms);
    end.started_at = Instant::from_nanoseconds(INT64_MIN);
    end.ended_at = Instant::from_nanoseconds(ns);
    control::Failed failed{round_of("b"), end};
    failed.sent_at = end.ended_at;
    sends("b", failed);
    sends("a", failed);
  }
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_TRUE(decided().root_cause);
}

TEST_F(Failures, IgnoresFailuresOfAnOldRound) {
  job_spec.max_restarts = 1;
  a_and_b_run();
  fails("a", ended("a", 50ms, 3));
  all({"a", "b"}, &JobTest::sends_stopped);
  passes(20s);
  fails("b", ended("b", 0ms, 4));
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(decided().root_cause->end.exit_code, 4);
}

TEST_F(Failures, TheSameFailureAtStartupEndsTheJobEarly) {
  job_spec.max_restarts = 50;
  job_spec.startup_failures = 3;
  a_and_b_run();
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(received<control::JobResult>("a"));
    fails("a", ended("a", 0ms));
    all({"a", "b"}, &JobTest::sends_stopped);
  }
  expect_decided("a", false);
  EXPECT_EQ(decided().same_startup_failures, 3);
  EXPECT_NE(decided().failure_summary.find("--startup-failures"), std::string::npos);
}

TEST_F(Failures, DifferentFailuresDoNotEndTheJobEarly) {
  job_spec.max_restarts = 50;
  job_spec.startup_failures = 2;
  a_and_b_run();
  WorkerExit late = ended("a", 0ms);
  late.started_at = late.ended_at - 1min;
  for (const WorkerExit& end : {ended("a", 0ms, 1), ended("a", 0ms, 2), late, late, late}) {
    fails("a", end);
    all({"a", "b"}, &JobTest::sends_stopped);
    EXPECT_FALSE(received<control::JobResult>("a"));
  }
}

// The round fails on node a after this step, which both nodes have finished.
class Repeats : public Failures {
 public:
  void fails_at(int64_t step, int exit_code = 3) {
    WorkerExit end = ended("a", 0ms, exit_code);
    end.started_at = end.ended_at - 1min;
    end.step = step;
    fails("a", end);
    for (const char* name : {"a", "b"}) {
      control::Stopped stopped{round_of(name), 40'000};
      stopped.step = step;
      sends(name, stopped);
    }
  }
  void run(bool stops) {
    job_spec.max_restarts = 50;
    job_spec.stops_on_repeat = stops;
    a_and_b_run();
  }
};

TEST_F(Repeats, TheSameFailureAtTheSameStepEndsTheJob) {
  run(true);
  fails_at(12);
  EXPECT_FALSE(received<control::JobResult>("a"));
  EXPECT_EQ(assignment("b").past_failures.value_or(control::PastFailures()).best_step, 12);
  fails_at(12);
  expect_decided("a", false);
  EXPECT_EQ(decided().same_failures, 2);
  EXPECT_EQ(decided().why_no_retry, "the same failure came again at step 12");
  EXPECT_NE(decided().failure_summary.find("(--on-repeat=stop)"), std::string::npos);
  EXPECT_EQ(decided().root_cause->end.step, 12);
}

TEST_F(Repeats, AnotherStepOrAnotherFailureDoesNot) {
  run(true);
  fails_at(12);
  fails_at(13);
  fails_at(13, 4);
  EXPECT_FALSE(received<control::JobResult>("a"));
}

TEST_F(Repeats, ByDefaultTheyAreOnlyCounted) {
  job_spec.max_restarts = 2;
  a_and_b_run();
  for (int i = 0; i < 3; ++i) fails_at(12);
  expect_decided("a", false);
  EXPECT_EQ(decided().same_failures, 3);
  EXPECT_EQ(decided().why_no_retry, "");
  EXPECT_EQ(decided().failure_summary.find("on-repeat"), std::string::npos);
}

TEST_F(Repeats, AJobWithoutARestartLeftReportsThatARetryIsUseless) {
  job_spec.max_restarts = 1;
  job_spec.stops_on_repeat = true;
  a_and_b_run();
  fails_at(12);
  fails_at(12);
  EXPECT_NE(decided().why_no_retry, "");
}

// As large as a frame of one message; the resulting outcome is larger.
WorkerExit wordy(WorkerExit end) {
  const std::string most(16'000, 'x');
  end.last_lines = {most, most, most};
  return end;
}

WorkerExit wordy_error(WorkerExit end) {
  const std::string most(16'000, 'x');
  end.error.emplace().path = most;
  end.error->message = end.error->traceback = end.hang = most;
  return end;
}

TEST_F(Failures, ADecidingMessageMayFillAFrame) {
  a_and_b_run();
  sends("b",
        control::Failed{round_of("b"), wordy(ended("b", 1ms)), true, std::string(15'000, 'y')});
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_decided("a", false);
  EXPECT_FALSE(decided().root_cause->why.empty());
}

TEST_F(Failures, AnErrorTextMayFillAFrame) {
  run_without_restarts();
  fails("b", wordy_error(ended("b", 1ms)));
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_decided("a", false);
  EXPECT_EQ(decided().root_cause->end.error->message.size(), 16'000U);
}

TEST_F(Failures, AStoppedMessageMayFillAFrame) {
  job_spec.max_restarts = 0;
  player("a").facts.clock_domain = player("b").facts.clock_domain = "box";
  a_and_b_run();
  fails("a", ended("a", 1ms));
  stops_with("b", wordy_error(ended("a", 5ms)));
  sends_stopped("a");
  expect_decided("a", false);
  EXPECT_EQ(decided().root_cause->node, "b");
}

TEST_F(Failures, MessagesCannotMoveTheTerminalCursor) {
  a_and_b_run();
  WorkerExit end = ended("b", 1ms);
  end.last_lines = {"\x1b[2Jline"};
  sends("b", control::Failed{round_of("b"), end, true, "gone\x1b[2J"});
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(decided().root_cause->why, "a worker could not be started on b: gone?[2J");
  EXPECT_EQ(decided().failure_summary.find('\x1b'), std::string::npos);
  EXPECT_EQ(decided().root_cause->end.last_lines.front(), "?[2Jline");
}

TEST_F(Failures, LeaveReasonsCannotMoveTheTerminalCursor) {
  a_and_b_run();
  sends("b", control::Leave{"bored\x1b[2J\nERROR forged"});
  EXPECT_EQ(received<control::Stop>("a")->why, "b left (bored?[2J ERROR forged)");
}

TEST_F(Failures, RemovesManyEmptyLines) {
  run_without_restarts();
  WorkerExit end = ended("b", 1ms);
  end.last_lines.resize(60'000);
  fails("b", end);
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_LE(decided().root_cause->end.last_lines.size(), limits::kLastLines);
}

TEST_F(Failures, AReportedOutcomeMayFillAFrame) {
  control::RankAssignment assignment;
  assignment.round = RoundNumber(3);
  assignment.term = Term(3);
  assignment.group_size = 2;
  assignment.job_key = "key";
  control::Register& facts = player("b").facts;
  facts.term = assignment.term;
  facts.assignment = assignment;
  facts.decided = control::JobResult{false, std::string(15'000, 'v')};
  facts.decided->root_cause = RootCause{"n", wordy(WorkerExit{}), "w"};
  returns("b", control::ReportedPhase::Stopped, 3);
  player("a").facts.term = assignment.term;
  assignment.group_rank = 1;
  player("a").facts.assignment = assignment;
  returns("a", control::ReportedPhase::Stopped, 3);
  expect_decided("a", false);
  EXPECT_EQ(decided().failure_summary.size(), limits::kFailureSummaryBytes);
}

}  // namespace
}  // namespace cpprun::test

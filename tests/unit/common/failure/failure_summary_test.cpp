// Output after a failed job: the root cause, the failure summary, torchrun's summary.
#include "common/failure/failure_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

namespace cpprun::test {
namespace {

WorkerExit ended(int64_t rank, int exit_code, int64_t at) {
  WorkerExit end;
  end.rank = Rank(rank);
  end.local_rank = LocalRank(rank);
  end.pid = static_cast<int>(1000 + rank);
  end.exit_code = exit_code;
  end.ended_at_wall = WallTime{at};
  return end;
}

WorkerExit with_error(WorkerExit end, int64_t stamp, int64_t file_time) {
  end.error = ErrorReport{"/logs/error.json", "ValueError: no",    "",
                          WallTime{stamp},    WallTime{file_time}, true};
  return end;
}

Failure failure_of(std::vector<WorkerExit> ends) {
  Failure failure;
  failure.title = "train.py";
  failure.host = "node0";
  failure.ends = std::move(ends);
  failure.root_cause = {"node0", failure.ends[root_cause_index(failure.ends)]};
  failure.world_size = static_cast<int64_t>(failure.ends.size());
  failure.restarts_used = 1;
  failure.max_restarts = 3;
  failure.stamp = [](WallTime) { return "2026-11-21_14:03:59"; };
  failure.clock = [](WallTime) { return "14:03:59.113"; };
  return failure;
}

// The field of that label, or "".
std::string field(const FailureSummary& summary, const std::string& label) {
  for (const auto& [name, value] : summary.fields) {
    if (name == label) return value;
  }
  return "";
}

TEST(FailureSummary, AnInvalidErrorFileIsNotTheCause) {
  WorkerExit end = ended(0, 3, 10);
  end.error = ErrorReport{};
  end.error->is_readable = false;
  end.error->message = "the error file could not be read: it is empty";
  EXPECT_EQ(field(failure_summary(failure_of({end})), "cause"), "exited with code 3");
  end.last_lines = {"no such batch"};
  const FailureSummary summary = failure_summary(failure_of({end}));
  EXPECT_EQ(field(summary, "cause"), "no such batch");
  EXPECT_EQ(field(summary, "note"), "the error file could not be read: it is empty");
}

TEST(RootCause, IsTheFirstDeathOfAnyRank) {
  EXPECT_EQ(root_cause_index({ended(0, -15, 20), ended(1, 0, 5), ended(2, 1, 10)}), 2U);
}

TEST(RootCause, SkipsSuccesses) {
  EXPECT_EQ(root_cause_index({ended(0, 0, 1), ended(1, 3, 10)}), 1U);
}

TEST(RootCause, OfTwoAtOneTimeIsTheOneReportedFirst) {
  EXPECT_EQ(root_cause_index({ended(1, 1, 10), ended(0, 1, 10)}), 0U);
}

TEST(RootCause, AnErrorWrittenBeforeTheFirstDeathCountsWithItsOwnTime) {
  const WorkerExit first = ended(0, 1, 100'000);
  EXPECT_EQ(root_cause_index({first, with_error(ended(1, 1, 110'000), 80'000, 100'000)}), 1U);
  EXPECT_EQ(root_cause_index({first, with_error(ended(1, 1, 110'000), 80'000, 100'001)}), 0U);
}

// The agent stopped it before its own exit.
TEST(RootCause, AnErrorWrittenBeforeTheFirstDeathCountsWithoutAnExitOfItsOwn) {
  WorkerExit stopped = with_error(ended(1, -15, 110'000), 80'000, 100'000);
  stopped.is_stopped_by_us = true;
  EXPECT_EQ(root_cause_index({ended(0, 1, 100'000), stopped}), 1U);
}

// A busy agent learns of a death later than the peer that writes an error.
TEST(RootCause, AnErrorFromAboutTheTimeOfAKillIsAConsequence) {
  const WorkerExit killed = ended(0, -9, 200'000);
  EXPECT_EQ(root_cause_index({killed, with_error(ended(1, 1, 210'000), 80'000, 100'001)}), 0U);
  EXPECT_EQ(root_cause_index({killed, with_error(ended(1, 1, 210'000), 80'000, 100'000)}), 1U);
  EXPECT_EQ(root_cause_index({with_error(ended(1, 1, 190'000), 80'000, 180'000), killed}), 1U)
      << "the agent reads both exits at once, in any order";
}

TEST(RootCause, AnErrorFileOfTheFirstDeadPrecedesTheDeath) {
  const WorkerExit first = with_error(ended(1, 1, 100'000), 50'000, 99'000);
  EXPECT_EQ(root_cause_index({with_error(ended(0, -15, 110'000), 80'000, 85'000), first}), 1U);
}

TEST(RootCause, AnErrorWrittenAfterTheFirstDeathIsAConsequence) {
  EXPECT_EQ(root_cause_index({ended(0, -9, 100), with_error(ended(1, 1, 130), 90, 120)}), 0U);
}

TEST(RootCause, AHangPrecedesTheConsequencesOfTheStop) {
  WorkerExit hung = ended(1, 0, 200);  // it ended with success on a stop request
  hung.hang = "no heartbeat for 9.0 s";
  EXPECT_EQ(root_cause_index({ended(0, -6, 100), hung}), 1U);
  EXPECT_EQ(describe_end(hung), "hung (no heartbeat for 9.0 s)");
  EXPECT_STREQ(name_of(classify(hung)), "hang");
  EXPECT_TRUE(has_own_cause(hung));
  EXPECT_FALSE(hung.is_success());
}

WorkerExit with_lost_peer(WorkerExit end, int64_t stamp, int64_t file_time) {
  end = with_error(std::move(end), stamp, file_time);
  end.error->is_consequence = true;
  return end;
}

TEST(RootCause, ALostPeerYieldsToAnotherCause) {
  const WorkerExit lost = with_lost_peer(ended(0, 1, 100), 90, 95);
  EXPECT_EQ(root_cause_index({lost, ended(1, 3, 110)}), 1U);
  WorkerExit stopped = ended(1, -15, 110);
  stopped.is_stopped_by_us = true;
  EXPECT_EQ(root_cause_index({lost, stopped}), 0U);  // stopped because of the first
  EXPECT_EQ(root_cause_index({lost, with_error(stopped, 90, 105)}), 1U);
}

TEST(RootCause, OfTwoLostPeersIsTheFirst) {
  const WorkerExit late = with_lost_peer(ended(0, 1, 110), 90, 105);
  EXPECT_EQ(root_cause_index({late, with_lost_peer(ended(1, 1, 100), 90, 95)}), 1U);
  EXPECT_EQ(root_cause_index({ended(1, 0, 5), late}), 1U);
}

WorkerExit with_line(WorkerExit end, const std::string& line) {
  end.last_lines = {"Traceback (most recent call last):", line};
  return end;
}

TEST(RootCause, RecognizesAConnectionClosedByAPeer) {
  const WorkerExit lost =
      with_line(ended(0, 1, 100), "RuntimeError: Connection closed by peer [::1]");
  EXPECT_TRUE(is_consequence(lost));
  EXPECT_EQ(root_cause_index({lost, ended(1, 3, 110)}), 1U);
  WorkerExit stopped = with_line(ended(1, 1, 110), "ValueError: no");
  stopped.is_stopped_by_us = true;
  EXPECT_EQ(root_cause_index({lost, stopped}), 1U) << "its exception was on the way out";
  WorkerExit only_stopped = ended(2, -15, 105);
  only_stopped.is_stopped_by_us = true;
  EXPECT_EQ(root_cause_index({lost, only_stopped, stopped}), 2U);
  EXPECT_EQ(root_cause_index({lost, with_line(stopped, "SignalException: Process got signal: 15")}),
            0U);
  EXPECT_EQ(root_cause_index({with_line(ended(0, 1, 100), "Error: no"), stopped}), 0U);
}

TEST(RootCause, AnOldWarningIsNoConsequence) {
  WorkerExit end = with_line(ended(0, 1, 100), "ValueError: no");
  end.last_lines.insert(end.last_lines.begin(), "Connection reset by peer, trying again");
  end.last_lines.insert(end.last_lines.begin() + 1, 7, "another line");
  EXPECT_FALSE(is_consequence(end));
}

TEST(HappenedAt, IsTheTimeOfTheErrorFile) {
  WorkerExit end = with_error(ended(0, 1, 5'000'000), 1, 4'000'000);
  end.ended_at = Instant::from_nanoseconds(9'000'000'000);
  EXPECT_EQ(happened_at(end), Instant::from_nanoseconds(8'010'000'000)) << "at the latest";
  end.started_at = Instant::from_nanoseconds(8'500'000'000);
  EXPECT_EQ(happened_at(end), end.ended_at) << "no error is older than its worker";
  end.error->file_time = WallTime{INT64_MIN};
  EXPECT_EQ(happened_at(end), end.ended_at);
}

TEST(WorkerLifetime, InvalidTimesAreZero) {
  WorkerExit end;
  end.started_at = Instant::from_nanoseconds(INT64_MIN);
  end.ended_at = Instant::from_nanoseconds(INT64_MAX);
  EXPECT_EQ(lived(end), Duration{});
}

TEST(RootCause, AFutureTimestampIsNoExcuse) {
  EXPECT_EQ(root_cause_index({with_error(ended(0, 1, 100), 5000, 99), ended(1, 1, 200)}), 0U);
}

TEST(DescribeEnd, DescribesEveryExit) {
  EXPECT_EQ(describe_end(ended(0, 3, 0)), "exited with code 3");
  WorkerExit killed = ended(0, -9, 0);
  EXPECT_EQ(describe_end(killed), "was killed by SIGKILL");
  killed.is_oom_kill = true;
  EXPECT_EQ(describe_end(killed), "was killed by SIGKILL (the kernel's OOM killer: out of memory)");
  WorkerExit core = ended(0, -11, 0);
  core.has_core = true;
  EXPECT_EQ(describe_end(core), "was killed by SIGSEGV (core dumped)");
  EXPECT_EQ(describe_end(ended(0, -40, 0)), "was killed by signal 40");
  EXPECT_EQ(describe_end(ended(0, INT_MIN, 0)), "exited with code -2147483648")
      << "of another node's making: no signal has that number";
}

TEST(FailureSummary, HasEachFactOnce) {
  WorkerExit stopped = ended(0, -15, 30);
  stopped.is_stopped_by_us = true;
  Failure failure = failure_of({ended(1, 13, 10), stopped, ended(2, 1, 20), ended(3, 0, 5)});
  failure.root_cause.end.last_lines = {
      "Traceback (most recent call last):", "  File \"/data/train.py\", line 4, in load",
      "ValueError: bad batch"};
  failure.root_cause.end.started_at = Instant::from_nanoseconds(1'000'000'000);
  failure.root_cause.end.ended_at = Instant::from_nanoseconds(2'500'000'000);
  failure.log_folder = "logs/job_1";
  EXPECT_EQ(summary_text(failure_summary(failure)),
            "error: train.py failed on rank 1 (node node0, local rank 1)\n"
            "  cause     ValueError: bad batch\n"
            "  at        train.py:4 in load, 1.5 s after start (14:03:59.113)\n"
            "  exit      code 13, pid 1001\n"
            "  others    rank 2 failed too (code 1); rank 0 was stopped by cpprun\n"
            "  restarts  1 of 3 used\n"
            "  logs      logs/job_1\n"
            "  details   cpprunctl events logs/job_1\n");
}

TEST(FailureSummary, WithoutAnErrorTextTheExitIsTheCause) {
  WorkerExit end = ended(1, -9, 10);
  end.is_oom_kill = true;
  const FailureSummary summary = failure_summary(failure_of({end}));
  EXPECT_EQ(field(summary, "cause"), "killed by SIGKILL (the kernel's OOM killer: out of memory)");
  EXPECT_EQ(field(summary, "exit"), "pid 1001");
  EXPECT_THAT(summary.hint, testing::EndsWith("[out_of_memory]"));
}

TEST(FailureSummary, CountsFailuresOnOtherNodes) {
  Failure failure = failure_of({ended(1, 13, 10)});
  failure.world_size = 64;
  failure.restarts_used = 3;
  EXPECT_EQ(field(failure_summary(failure), "others"), "63 other workers ended with the round");
  EXPECT_EQ(field(failure_summary(failure), "restarts"), "3 of 3 used");
}

TEST(FailureSummary, NamesTheOptionForRestarts) {
  Failure failure = failure_of({ended(1, 13, 10)});
  failure.restarts_used = failure.max_restarts = 0;
  failure.admin_restarts = 2;
  EXPECT_EQ(field(failure_summary(failure), "restarts"),
            "0 of 0 used (allow some with --max-restarts=N); 2 more restarts by cpprunctl restart");
}

TEST(FailureSummary, NamesTheBudgetOfHangs) {
  Failure failure = failure_of({ended(1, -15, 10)});
  failure.root_cause.end.hang = "no heartbeat for 9.0 s";
  failure.max_hangs = 1;
  EXPECT_EQ(field(failure_summary(failure), "restarts"), "1 of 1 used after hangs (--max-hangs)");
  failure.restarts_used = 0;
  failure.max_hangs = 0;
  EXPECT_EQ(field(failure_summary(failure), "restarts"),
            "0 of 0 used after hangs (allow some with --max-hangs=N)");
}

TEST(FailureSummary, ShowsRepetitions) {
  Failure failure = failure_of({ended(1, 13, 10)});
  failure.same_startup_failures = 4;
  EXPECT_THAT(field(failure_summary(failure), "repeated"),
              testing::HasSubstr("in the same way in 4 attempts in a row"));
}

TEST(FailureSummary, AHangIsNoExit) {
  Failure failure = failure_of({ended(1, -15, 10)});
  failure.root_cause.end.hang = "no heartbeat for 9.0 s";
  const FailureSummary summary = failure_summary(failure);
  EXPECT_EQ(summary.headline, "train.py hung on rank 1 (node node0, local rank 1)");
  EXPECT_EQ(field(summary, "cause"), "no heartbeat for 9.0 s");
  EXPECT_EQ(field(summary, "exit"), "pid 1001");
  EXPECT_EQ(field(summary, "restarts"), "1 of 3 used after hangs");
}

TEST(FailureSummary, ShowsAStartFailure) {
  Failure failure;
  failure.root_cause = {
      "node1",
      {},
      "a worker could not be started on node1: cannot start ./train: No such file or directory"};
  const FailureSummary summary = failure_summary(failure);
  EXPECT_EQ(summary.headline, "no worker could be started on node1");
  EXPECT_EQ(field(summary, "cause"), "cannot start ./train: No such file or directory");
  EXPECT_THAT(summary.hint, testing::EndsWith("[program_not_found]"));
}

TEST(FailureSummary, WrapsAtTheWidthAndColoursLabels) {
  FailureSummary summary{"x failed", {{"cause", "aaaa bbbb cccc dddd"}}, "do this and that"};
  EXPECT_EQ(summary_text(summary, false, 22),
            "error: x failed\n  cause     aaaa bbbb\n            cccc dddd\n"
            "hint: do this and that\n");
  EXPECT_THAT(summary_text(summary, true, 100), testing::HasSubstr("\033[1;31merror:\033[0m "));
}

TEST(FailureSummary, HintNamesTheMissingModuleItsInterpreterAndNode) {
  Failure failure = failure_of({ended(1, 1, 10)});
  failure.interpreter = "/opt/python3";
  failure.root_cause.end.last_lines = {"ModuleNotFoundError: No module named 'torch_geometric'"};
  EXPECT_THAT(failure_summary(failure).hint,
              testing::StartsWith("module 'torch_geometric' is not installed for /opt/python3 on "
                                  "node0."));
  failure.root_cause.end.last_lines = {"/opt/python3: No module named nosuchmodule"};
  EXPECT_THAT(failure_summary(failure).hint, testing::StartsWith("module 'nosuchmodule' is"));
}

TEST(FailureSummary, LastLinesAreIndented) {
  WorkerExit end = ended(0, 1, 10);
  end.last_lines = {"Traceback", "KeyError: 'x'", "  "};
  EXPECT_EQ(last_lines_text({"node0", end}),
            "the last 3 lines of rank 0 on stderr:\n  Traceback\n  KeyError: 'x'\n    \n");
  end.error = ErrorReport{"", "ValueError: no", "", {}, {}, true};
  EXPECT_EQ(field(failure_summary(failure_of({end})), "cause"), "ValueError: no");
}

TEST(FailedWorker, IsOneLine) {
  WorkerExit end = ended(1, 1, 10);
  EXPECT_EQ(failed_worker_text({"node0", end}), "rank 1 (pid 1001, on node0) exited with code 1");
  end.error = ErrorReport{"", "ValueError: no\nsuch batch", "", {}, {}, true};
  EXPECT_EQ(failed_worker_text({"node0", end}),
            "rank 1 (pid 1001, on node0) exited with code 1: ValueError: no such batch");
}

TEST(TorchrunSummary, PrintsOneFailureInTorchrunsFormat) {
  std::string wide(60, '=');
  std::string thin(60, '-');
  EXPECT_EQ(torchrun_summary(failure_of({ended(0, 1, 10), ended(1, 0, 5)})),
            "\n" + wide + "\ntrain.py FAILED\n" + thin + "\nFailures:\n  <NO_OTHER_FAILURES>\n" +
                thin +
                "\nRoot Cause (first observed failure):\n"
                "[0]:\n"
                "  time      : 2026-11-21_14:03:59\n"
                "  host      : node0\n"
                "  rank      : 0 (local_rank: 0)\n"
                "  exitcode  : 1 (pid: 1000)\n"
                "  error_file: <N/A>\n"
                "  traceback : To enable traceback see: "
                "https://pytorch.org/docs/stable/elastic/errors.html\n" +
                wide + "\n");
}

TEST(TorchrunSummary, TheRootCauseKeepsItsNumber) {
  std::string text =
      torchrun_summary(failure_of({ended(0, 1, 20), ended(1, -9, 10), ended(2, 1, 30)}));
  size_t root = text.find("Root Cause (first observed failure):\n[1]:\n");
  ASSERT_NE(root, std::string::npos) << text;
  EXPECT_LT(text.find("Failures:\n[0]:\n"), text.find("[2]:\n"));
  EXPECT_LT(text.find("[2]:\n"), root);
  EXPECT_NE(text.find("exitcode  : -9 (pid: 1001)"), std::string::npos);
  EXPECT_NE(text.find("traceback : Signal 9 (SIGKILL) received by PID 1001"), std::string::npos);
}

TEST(TorchrunSummary, IndentsATraceback) {
  WorkerExit end = with_error(ended(0, 1, 10), 10, 10);
  end.error->traceback = "Traceback:\n  File x\nValueError: no";
  std::string text = torchrun_summary(failure_of({end}));
  EXPECT_NE(text.find("  error_file: /logs/error.json\n"), std::string::npos);
  EXPECT_NE(text.find("  traceback : Traceback:\n    File x\n  ValueError: no\n"),
            std::string::npos);
}

TEST(TorchrunSummary, PrintsTheMessageWithoutATraceback) {
  std::string text = torchrun_summary(failure_of({with_error(ended(0, 1, 10), 10, 10)}));
  EXPECT_NE(text.find("  traceback : ValueError: no\n"), std::string::npos);
}

TEST(TorchrunSummary, RulesAreAtMostSixtyWide) {
  Failure failure = failure_of({ended(0, 1, 10)});
  failure.title = std::string(500, 't');
  std::string text = torchrun_summary(failure);
  EXPECT_EQ(text.substr(0, 62), "\n" + std::string(60, '=') + "\n");
}

}  // namespace
}  // namespace cpprun::test

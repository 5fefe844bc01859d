// Exit reports of workers are complete and in order.
#include <signal.h>

#include <chrono>
#include <fstream>

#include "common/limits/agent.hpp"
#include "tests/support/blocked_io.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

using ProcessEnd = ProcessTest;

TEST_F(ProcessEnd, ReportsEveryExitCode) {
  std::vector<WorkerSpec> workers;
  for (int code = 0; code < 256; ++code)
    workers.push_back(worker(code, {"exit " + std::to_string(code)}));
  start(workers);
  run_until_quiet();
  ASSERT_EQ(ends_.size(), 256U);
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(end_of(code).exit_code, code);
    EXPECT_EQ(end_of(code).rank, Rank(100 + code));
    EXPECT_FALSE(end_of(code).is_stopped_by_us);
  }
}

TEST_F(ProcessEnd, ReportsSignalsAsNegativeNumbers) {
  const std::vector<int> signals{SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,
                                 SIGBUS,  SIGFPE,  SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2,
                                 SIGPIPE, SIGALRM, SIGTERM, 40};
  std::vector<WorkerSpec> workers;
  for (int signal : signals)
    workers.push_back(worker(signal, {"kill " + std::to_string(signal) + "; pause"}));
  start(workers);
  run_until_quiet();
  for (int signal : signals) {
    EXPECT_EQ(end_of(signal).exit_code, -signal);
    EXPECT_EQ(end_of(signal).signal(), signal);
    EXPECT_FALSE(end_of(signal).is_oom_kill);
  }
}

TEST_F(ProcessEnd, ReportsExitsInTheOrderOfDeath) {
  start({worker(0, {"report a; pause"}), worker(1, {"report b; pause"}),
         worker(2, {"report c; pause"})});
  const int a = wait_reported("a"), b = wait_reported("b"), c = wait_reported("c");
  for (int pid : {c, a, b}) {
    ::kill(pid, SIGKILL);
    const size_t before = ends_.size();
    run_until([&] { return ends_.size() > before; });
  }
  run_until_quiet();
  EXPECT_EQ(ends_[0].local_rank, LocalRank(2));
  EXPECT_EQ(ends_[1].local_rank, LocalRank(0));
  EXPECT_EQ(ends_[2].local_rank, LocalRank(1));
  EXPECT_LE(ends_[0].ended_at, ends_[1].ended_at);
}

TEST_F(ProcessEnd, ReportsAllWorkersGoneOnceAfterTheExits) {
  size_t ends_at_quiet = 0;
  also_on_end_ = [&](const WorkerExit&) { ends_at_quiet += quiet_count_ == 0 ? 1 : 0; };
  start({worker(0, {"exit 0"}), worker(1, {"sleep_ms 50; exit 1"})});
  run_until_quiet();
  EXPECT_EQ(ends_at_quiet, 2U);
  EXPECT_EQ(quiet_count_, 1);
}

TEST_F(ProcessEnd, RoundAfterRoundOnOneHost) {
  for (int round = 1; round <= 20; ++round) {
    start({worker(0, {"exit 3"}), worker(1, {"exit 0"})});
    run_until([&] { return quiet_count_ == round; });
    EXPECT_EQ(ends_.size(), 2U);
  }
}

TEST_F(ProcessEnd, NextRoundMayStartInsideTheCallback) {
  ProcessHost::Events events;
  std::unique_ptr<ProcessHost> own;
  int rounds = 0;
  events.on_end = [](const WorkerExit&) {};
  events.on_all_workers_gone = [&] {
    if (++rounds < 3) own->start({worker(0, {"exit 0"})}, {});
  };
  own = std::make_unique<ProcessHost>(loop_, options_, events);
  own->start({worker(0, {"exit 0"})}, {});
  run_until([&] { return rounds == 3; });
}

TEST_F(ProcessEnd, ReadsTheErrorFileOfAFailedWorker) {
  const TemporaryFolder folder;
  WorkerSpec failing =
      worker(0, {R"(errfile {"message": "short and plain", "timestamp": "1700000000"}; exit 6)"});
  failing.error_file = folder / "error.json";
  failing.environment.push_back("TORCHELASTIC_ERROR_FILE=" + failing.error_file);
  WorkerSpec silent = worker(1, {"exit 5"});
  silent.error_file = folder / "none.json";
  start({failing, silent});
  run_until_quiet();
  ASSERT_TRUE(end_of(0).error.has_value());
  EXPECT_EQ(end_of(0).error->message, "short and plain");
  EXPECT_EQ(end_of(0).error->path, folder / "error.json");
  EXPECT_EQ(end_of(0).error->stamp, WallTime{1'700'000'000'000'000});
  EXPECT_LE(end_of(0).error->file_time, end_of(0).ended_at_wall);
  EXPECT_FALSE(end_of(1).error.has_value());
}

TEST_F(ProcessEnd, AnErrorFileThatCannotBeReadDelaysTheReportOnlyForAWhile) {
  const TemporaryFolder folder;
  BlockedIo blocked;
  options_.io = blocked.io;
  WorkerSpec failing = worker(0, {R"(errfile {"message": "too late"}; exit 6)"});
  failing.error_file = folder / "error.json";
  failing.environment.push_back("TORCHELASTIC_ERROR_FILE=" + failing.error_file);
  bool has_failed = false;
  on_failure_ = [&](const WorkerExit& end) {
    has_failed = true;
    EXPECT_TRUE(ends_.empty() && end.exit_code == 6) << "the other workers are stopped at once";
  };
  start({failing, worker(1, {"sleep_ms 300; exit 0"})});
  run_until_quiet();
  EXPECT_TRUE(has_failed);
  ASSERT_TRUE(end_of(0).error.has_value());
  EXPECT_FALSE(end_of(0).error->is_readable);
  EXPECT_EQ(end_of(0).error->message,
            "the error file could not be read: its file system did not answer within 5 s");
  blocked.release();
  ASSERT_TRUE(blocked.io->wait(std::chrono::seconds(60)));
  while (loop_.poll() > 0) continue;
  EXPECT_EQ(ends_.size(), 2U) << "a late answer does not count";
}

TEST_F(ProcessEnd, ReportsTheLastLinesOfStderrWithAFailure) {
  CaughtStream err(2);
  constexpr size_t kPrinted = limits::kLastLines + 10;
  std::string script;
  for (size_t i = 0; i < kPrinted; ++i) script += "eprint line" + std::to_string(i) + ";";
  WorkerSpec failing = worker(0, {script + "exit 1"});
  failing.err.to_console = true;
  WorkerSpec other = worker(1, {"eprint fine; exit 0"});
  other.err.to_console = true;
  start({failing, other});
  run_until_quiet();
  err.restore();
  ASSERT_EQ(end_of(0).last_lines.size(), limits::kLastLines);
  EXPECT_EQ(end_of(0).last_lines.front(), "line10");
  EXPECT_EQ(end_of(0).last_lines.back(), "line" + std::to_string(kPrinted - 1));
}

TEST_F(ProcessEnd, AFailureIsReportedBeforeItsLastLinesAreRead) {
  CaughtStream err(2);
  WorkerSpec failing = worker(0, {"eprint why; report a; pause"});
  failing.err.to_console = true;
  std::vector<std::pair<int, bool>> failures;  // exit code; whether on_end() came before
  on_failure_ = [&](const WorkerExit& end) {
    failures.emplace_back(end.exit_code, !ends_.empty());
    host().stop(SIGTERM, std::chrono::seconds(30));
  };
  start({failing, worker(1, {"sleep_ms 600000"})});
  ::kill(wait_reported("a"), SIGKILL);
  run_until_quiet();
  err.restore();
  EXPECT_EQ(failures, (std::vector<std::pair<int, bool>>{{-SIGKILL, false}}));
  EXPECT_EQ(end_of(0).last_lines, std::vector<std::string>{"why"});
  EXPECT_EQ(end_of(1).exit_code, -SIGTERM);
}

}  // namespace
}  // namespace cpprun::test

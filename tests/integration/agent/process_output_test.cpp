// Output of workers on its way to files and the console.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "common/limits/agent.hpp"
#include "common/text.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ProcessOutput : public ProcessTest {
 protected:
  WorkerSpec tee(int rank, std::vector<std::string> scripts) {
    WorkerSpec spec = worker(rank, std::move(scripts));
    const std::string number = std::to_string(rank);
    spec.out.to_console = spec.err.to_console = true;
    spec.out.prefix = spec.err.prefix = "[default" + number + "]:";
    spec.out.file = folder_ / ("out" + number);
    spec.err.file = folder_ / ("err" + number);
    return spec;
  }
  std::vector<std::string> sorted_lines(const std::string& text) {
    std::vector<std::string> lines = text::split(text, '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  static long memory_mb() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  }

  TemporaryFolder folder_;
};

TEST_F(ProcessOutput, TeePrefixesLinesAndKeepsTheFile) {
  CaughtStream out(1), err(2);
  start({tee(0, {"print one; print two; eprint bad"}), tee(1, {"print three"})});
  run_until_quiet();
  const std::string shown = out.restore(), complained = err.restore();
  EXPECT_EQ(sorted_lines(shown),
            (std::vector<std::string>{"[default0]:one", "[default0]:two", "[default1]:three"}));
  EXPECT_EQ(complained, "[default0]:bad\n");
  EXPECT_EQ(read_file(folder_ / "out0"), "one\ntwo\n");
  EXPECT_EQ(read_file(folder_ / "err0"), "bad\n");
  EXPECT_EQ(read_file(folder_ / "out1"), "three\n");
}

TEST_F(ProcessOutput, RedirectWritesOnlyToTheFile) {
  CaughtStream out(1);
  WorkerSpec spec = worker(0, {"print to-file"});
  spec.out.file = folder_ / "out";
  start({spec, worker(1, {"print nowhere"})});
  run_until_quiet();
  EXPECT_EQ(out.restore(), "");
  EXPECT_EQ(read_file(folder_ / "out"), "to-file\n");
}

TEST_F(ProcessOutput, NeverMixesLinesOfWorkers) {
  constexpr int kWorkers = 4, kLines = 50'000;
  CaughtStream out(1);
  std::vector<WorkerSpec> workers;
  for (int rank = 0; rank < kWorkers; ++rank) {
    workers.push_back(tee(rank, {"lines " + std::to_string(kLines)}));
  }
  start(workers);
  run_until_quiet(300);
  const std::string text = out.restore();
  std::map<char, int> next;
  size_t bad = 0, count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const char rank = line.size() == 90 ? line[8] : '?';
    const bool is_whole = line.starts_with("[default") && line[11] == rank && line.ends_with(" ");
    bad += is_whole && atoi(line.c_str() + 13) == next[rank]++ ? 0 : 1;
  }
  EXPECT_EQ(bad, 0U);
  EXPECT_EQ(count, static_cast<size_t>(kWorkers * kLines));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "out3"), 80U * kLines);
}

TEST_F(ProcessOutput, ShowsAPartialLineSoonAndContinuesIt) {
  CaughtStream out(1);
  start({tee(0, {"part begin-; report began; sleep_ms 300; print end"}),
         tee(1, {"sleep_ms 1000; print late"})});
  run_until_quiet();
  EXPECT_EQ(out.restore(), "[default0]:begin-end\n[default1]:late\n");
}

TEST_F(ProcessOutput, EndsAPartialLineBeforeAnotherWorkersText) {
  CaughtStream out(1);
  start(
      {tee(0, {"part begin-; sleep_ms 600; print end"}), tee(1, {"sleep_ms 300; print between"})});
  run_until_quiet();
  EXPECT_EQ(out.restore(), "[default0]:begin-\n[default1]:between\n[default0]:end\n");
  EXPECT_EQ(read_file(folder_ / "out0"), "begin-end\n");
}

TEST_F(ProcessOutput, KeepsOutputWithoutNewline) {
  CaughtStream out(1);
  start({tee(0, {"part no-end"}), worker(1, {"exit 0"})});
  run_until_quiet();
  EXPECT_EQ(out.restore(), "[default0]:no-end");
}

TEST_F(ProcessOutput, BinaryPassesUnchanged) {
  CaughtStream out(1);
  WorkerSpec spec = tee(0, {"bytes 1000"});
  spec.out.prefix = "";
  start({spec, worker(1, {"exit 0"})});
  run_until_quiet();
  std::string expected;
  for (int i = 0; i < 1000 * 256; ++i) expected += static_cast<char>(i % 256);
  EXPECT_TRUE(out.restore() == expected);
  EXPECT_TRUE(read_file(folder_ / "out0") == expected);
}

TEST_F(ProcessOutput, OneWorkerWithoutPrefixWritesDirectly) {
  CaughtStream out(1);
  WorkerSpec spec = worker(0, {"print mine; report worker; pause"});
  spec.out.to_console = true;
  start({spec});
  const int pid = wait_reported("worker");
  struct stat ours {
  }, its{};
  ::fstat(1, &ours);
  ::stat(("/proc/" + std::to_string(pid) + "/fd/1").c_str(), &its);
  EXPECT_EQ(ours.st_ino, its.st_ino);
  host().stop(SIGTERM, 1s);
  run_until_quiet();
  EXPECT_EQ(out.restore(), "mine\n");
}

TEST_F(ProcessOutput, PassesAGigabyteInBoundedTimeAndMemory) {
  CaughtStream out(1);
  out.close_reader();
  const int null = ::open("/dev/null", O_WRONLY);
  ::dup2(null, 1);
  ::close(null);
  const long before = memory_mb();
  WorkerSpec spec = worker(0, {"flood 1073741824"});
  spec.out.to_console = true;
  spec.out.prefix = "[x]:";
  start({spec, worker(1, {"exit 0"})});
  run_until_quiet(400);
  out.restore();
  EXPECT_EQ(end_of(0).exit_code, 0);
  EXPECT_LT(memory_mb() - before, 40);
}

TEST_F(ProcessOutput, ClosedStdoutReachesTheWorkers) {
  CaughtStream out(1);
  WorkerSpec spec = worker(0, {"flood 0"});
  spec.out.to_console = true;
  spec.out.prefix = "[x]:";
  start({spec, worker(1, {"exit 0"})});
  out.close_reader();
  run_until_quiet();
  out.restore();
  EXPECT_EQ(end_of(0).exit_code, -SIGPIPE);
  EXPECT_EQ(stdout_closed_count_, 1);
}

TEST_F(ProcessOutput, ABlockedConsoleBlocksOnlyItsWriters) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const int saved = ::dup(1);
  ::dup2(ends[1], 1);
  ::close(ends[1]);
  const long before = memory_mb();
  WorkerSpec flooding = worker(0, {"flood 0"});
  flooding.out.to_console = true;
  flooding.out.prefix = "[x]:";
  WorkerSpec failing = worker(1, {"sleep_ms 300; eprint why; exit 3"});
  failing.err.to_console = true;
  CaughtStream err(2);
  start({flooding, failing});
  run_until([&] { return ends_.size() == 1; });
  EXPECT_EQ(end_of(1).last_lines, std::vector<std::string>{"why"});
  EXPECT_LT(memory_mb() - before, 40);
  host().stop(SIGTERM, 1s);
  run_until([&] { return ends_.size() == 2; });
  ::dup2(saved, 1);  // without a reader the host drops the rest
  ::close(saved);
  drop_host();
  err.restore();
  ::close(ends[0]);
}

TEST_F(ProcessOutput, AFullDiskIsReportedOnceAndStopsNothing) {
  const std::string disk = folder_ / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") < 0)
    GTEST_SKIP() << "no rights to mount a tmpfs";
  CaughtStream out(1), err(2);
  WorkerSpec spec = tee(0, {"lines 10000; eprint done; exit 4"});
  spec.out.file = disk + "/out";
  WorkerSpec other = tee(1, {"lines 10000"});
  other.out.file = disk + "/out1";
  start({spec, other});
  run_until_quiet();
  const std::string shown = out.restore(), complained = err.restore();
  ::umount2(disk.c_str(), MNT_DETACH);
  EXPECT_EQ(end_of(0).exit_code, 4);
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 20'000);
  EXPECT_EQ(sorted_lines(complained).size(), 2U) << complained;
  EXPECT_NE(complained.find("No space left on device"), std::string::npos);
}

TEST_F(ProcessOutput, DuplicatesOfAllWorkersShareOneFile) {
  CaughtStream out(1);
  std::vector<WorkerSpec> workers;
  for (int rank = 0; rank < 2; ++rank) {
    workers.push_back(tee(rank, {"print red apple; print stone; part pe; sleep_ms 200; print ar"}));
    workers.back().out.duplicate_filters = {"apple", "pear"};
    workers.back().out.duplicate_file = folder_ / "filtered";
  }
  start(workers);
  run_until_quiet();
  out.restore();
  EXPECT_EQ(sorted_lines(read_file(folder_ / "filtered")),
            (std::vector<std::string>{"[default0]:pear", "[default0]:red apple", "[default1]:pear",
                                      "[default1]:red apple"}));
}

TEST_F(ProcessOutput, AGrandchildHoldingThePipeDelaysNothing) {
  CaughtStream out(1);
  start({tee(0, {"orphan 2; print bye", "pause"}), tee(1, {"fork 2; print bye", "pause"})});
  run_until([&] { return ends_.size() == 2; });
  const auto before = Clock::now();
  run_until_quiet();
  EXPECT_LT(Clock::now() - before, limits::kOutputAfterExit) << "it waited for the pipe";
  EXPECT_EQ(sorted_lines(out.restore()),
            (std::vector<std::string>{"[default0]:bye", "[default1]:bye"}));
}

TEST_F(ProcessOutput, AForeignProcessHoldingThePipeDelaysOneSecondAtMost) {
  CaughtStream out(1);
  start({tee(0, {"report w; sleep_ms 200; print bye"}), worker(1, {"exit 0"})});
  const int pid = wait_reported("w");
  // This process acts as the foreign process: it holds the write end of the pipe too.
  const int held = ::open(("/proc/" + std::to_string(pid) + "/fd/1").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(held, 0);
  run_until([&] { return ends_.size() == 2; });
  const auto before = Clock::now();
  run_until_quiet();
  EXPECT_GT(Clock::now() - before, 500ms);
  ::close(held);
  EXPECT_EQ(out.restore(), "[default0]:bye\n");
}

// The end of its stream comes in the next round, and does not end that round's output.
TEST_F(ProcessOutput, AForeignProcessHoldingThePipeOfAnEarlierRound) {
  CaughtStream out(1);
  start({tee(0, {"report w; sleep_ms 200; print bye"})});
  const int pid = wait_reported("w");
  const int held = ::open(("/proc/" + std::to_string(pid) + "/fd/1").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(held, 0);
  run_until_quiet();
  quiet_count_ = 0;
  start({tee(0, {"report second; sleep_ms 300; print late"})});
  wait_reported("second");
  ::close(held);
  run_until_quiet();
  EXPECT_EQ(out.restore(), "[default0]:bye\n[default0]:late\n");
}

TEST_F(ProcessOutput, BothStreamsInOneFileKeepWholeLines) {
  CaughtStream out(1);
  const int saved = ::dup(2);
  ::dup2(1, 2);
  start(
      {tee(0, {"part begin-; sleep_ms 600; print end"}), tee(1, {"sleep_ms 300; eprint between"})});
  run_until_quiet();
  ::dup2(saved, 2);
  ::close(saved);
  EXPECT_EQ(out.restore(), "[default0]:begin-\n[default1]:between\n[default0]:end\n");
}

}  // namespace
}  // namespace cpprun::test

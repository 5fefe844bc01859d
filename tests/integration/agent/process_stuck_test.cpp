// Processes that survive SIGKILL: here a tracer holds them where they exit.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "agent/process/diagnostics/stuck_process.hpp"
#include "common/machine/unique_fd.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

constexpr char kSeized = 's', kHeld = 'h';

// Forwards signals until the process is at its exit. With a negative number the tracer never reads
// the exit status. The end of the tracer releases the process.
[[noreturn]] void trace(int orders, int answers) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  int pid = 0;
  if (::read(orders, &pid, sizeof pid) != sizeof pid ||
      ::ptrace(PTRACE_SEIZE, abs(pid), nullptr, pid < 0 ? 0 : PTRACE_O_TRACEEXIT) < 0 ||
      ::write(answers, &kSeized, 1) != 1) {
    ::_exit(1);
  }
  int status = 0;
  while (pid > 0 && ::waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
    if (status >> 16 == PTRACE_EVENT_EXIT) break;
    ::ptrace(PTRACE_CONT, pid, nullptr, status >> 16 == 0 ? WSTOPSIG(status) : 0);
  }
  if (pid > 0 && ::write(answers, &kHeld, 1) != 1) ::_exit(1);
  while (::read(orders, &pid, sizeof pid) > 0) {
  }
  ::_exit(0);
}

// A process that is made before the host, so it is none of the host's children.
class Tracer {
 public:
  Tracer() {
    EXPECT_EQ(::pipe2(orders_, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(answers_, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(orders_[1]);
      trace(orders_[0], answers_[1]);
    }
    ::close(orders_[0]);
    ::close(answers_[1]);
  }
  ~Tracer() {
    let_go();
    ::close(answers_[0]);
  }

  void seize(int pid) {
    ASSERT_EQ(::write(orders_[1], &pid, sizeof pid), ssize_t{sizeof pid});
    ASSERT_EQ(answer(), kSeized) << "no process may be traced here";
  }
  void await_exit() { ASSERT_EQ(answer(), kHeld); }
  void let_go() {
    if (pid_ == 0) return;
    ::close(orders_[1]);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  int pid() const { return pid_; }

 private:
  char answer() {
    char byte = 0;
    ssize_t got = -1;
    do got = ::read(answers_[0], &byte, 1);
    while (got < 0 && errno == EINTR);  // SIGCHLD of another worker
    return got == 1 ? byte : '\0';
  }

  int orders_[2];
  int answers_[2];
  int pid_ = 0;
};

class ProcessStuck : public ProcessTest, public ::testing::WithParamInterface<bool> {
 protected:
  ProcessStuck() { use_cgroup(GetParam()); }
  ~ProcessStuck() override {
    tracer_.let_go();
    drop_host();
    ::signal(SIGCHLD, SIG_DFL);
  }
  void run_until_stuck() {
    run_until([this] { return stuck_count_ > 0; }, 60);
  }

  Tracer tracer_;
};
INSTANTIATE_TEST_SUITE_P(Both, ProcessStuck, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "cgroup" : "plain"; });

TEST_P(ProcessStuck, ReportsAWorkerThatSurvivesSigkillAndReapsItLater) {
  start({worker(0, {"report a; pause"}), worker(1, {"report b; pause"})});
  const int pid = wait_reported("a");
  wait_reported("b");
  tracer_.seize(pid);
  host().stop(SIGKILL, 0s);
  tracer_.await_exit();
  run_until_stuck();
  ASSERT_EQ(stuck_.size(), 1U);
  EXPECT_EQ(stuck_[0].pid, pid);
  EXPECT_EQ(stuck_[0].rank, Rank(100));
  EXPECT_GE(stuck_[0].since, 5s);
  EXPECT_EQ(quiet_count_, 0);
  EXPECT_EQ(ends_.size(), 1U) << "the other one";
  const std::string line = describe(stuck_[0]);
  EXPECT_TRUE(line.starts_with("rank 100 (pid " + std::to_string(pid) + ") has not ended "));
  EXPECT_NE(line.find("state t (tracing stop), held by the tracer with pid " +
                      std::to_string(tracer_.pid()) + ", wait channel "),
            std::string::npos)
      << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  run_until([this] { return stuck_count_ > 1; });

  tracer_.let_go();
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, -SIGKILL);
  EXPECT_FALSE(is_alive(pid));
  EXPECT_TRUE(host().stuck().empty());
  start({worker(0, {"exit 0"})});  // no child is left
  run_until([this] { return quiet_count_ == 2; });
}

TEST_P(ProcessStuck, ASecondRequestWaitsLess) {
  start({worker(0, {"report a; pause"})});
  tracer_.seize(wait_reported("a"));
  host().stop(SIGTERM, 30s);
  tracer_.await_exit();
  host().be_urgent();
  host().stop(SIGKILL, 0s);
  run_until_stuck();
  ASSERT_EQ(stuck_.size(), 1U);
  EXPECT_LT(stuck_[0].since, 5s);
}

// The start ends when it has: no worker starts beside it.
TEST_P(ProcessStuck, AWorkerOfAFailedStartSurvivesSigkill) {
  on_start_ = [this](int pid) { tracer_.seize(pid); };
  WorkerSpec broken = worker(1, {"exit 0"});
  broken.argv = {"no-such-program"};
  begin_start({worker(0, {"pause"}), broken});
  run_until_stuck();
  tracer_.await_exit();
  EXPECT_FALSE(start_error_);
  EXPECT_FALSE(host().is_idle());
  tracer_.let_go();
  run_until([this] { return start_error_.has_value(); });
  EXPECT_TRUE(ends_.empty());
  EXPECT_EQ(quiet_count_, 0);
  on_start_ = nullptr;
  start({worker(0, {"exit 0"})});
  run_until_quiet();
}

TEST_P(ProcessStuck, ReportsChildrenLeftBehindByAWorker) {
  const TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  start({worker(0, {"fork 2; await_fifo " + fifo + "; exit 3", "report kid; pause"})});
  const int kid = wait_reported("kid");
  tracer_.seize(kid);
  const UniqueFd opened(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  run_until([this] { return ends_.size() == 1; });
  tracer_.await_exit();
  host().be_urgent();
  run_until_stuck();
  ASSERT_EQ(stuck_.size(), 1U);
  EXPECT_EQ(stuck_[0].pid, kid);
  EXPECT_FALSE(stuck_[0].rank);
  EXPECT_EQ(name_of(stuck_[0]), "process " + std::to_string(kid) + ", left behind by local rank 0");
  tracer_.let_go();
  run_until_quiet();
}

TEST_P(ProcessStuck, DestroyingTheHostWaitsForNoStuckWorker) {
  start({worker(0, {"report a; pause"})});
  const int pid = wait_reported("a");
  tracer_.seize(pid);
  host().stop(SIGKILL, 0s);
  tracer_.await_exit();
  drop_host();
  EXPECT_TRUE(is_alive(pid));
  tracer_.let_go();
  run_until([&] { return ::kill(pid, 0) < 0; });
}

// A debugger, for example, that is itself stopped.
TEST_P(ProcessStuck, ATracerCanKeepTheStatusOfADeadWorker) {
  start({worker(0, {"report a; pause"}), worker(1, {"report b; pause"})});
  const int pid = wait_reported("a");
  wait_reported("b");
  tracer_.seize(-pid);
  ::kill(pid, SIGKILL);
  run_until([&] {
    return read_file("/proc/" + std::to_string(pid) + "/stat").find(") Z ") != std::string::npos;
  });
  host().stop(SIGKILL, 0s);
  run_until_stuck();
  ASSERT_EQ(stuck_.size(), 1U);
  EXPECT_EQ(stuck_[0].pid, pid);
  const std::string line = describe(stuck_[0]);
  EXPECT_NE(line.find("state Z (zombie), held by the tracer"), std::string::npos) << line;
  tracer_.let_go();
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, -SIGKILL);
}

TEST(StuckProcess, ShowsTheThreadBlockedInTheKernel) {
  const std::string status = "Name:\tpython\nState:\tD (disk sleep)\nTracerPid:\t0\n";
  const std::string stack =
      "[<0>] request_wait_answer+0x112/0x210\n[<0>] fuse_perform_write+0x335/0x7f0\n";
  EXPECT_EQ(describe_thread(status, "request_wait_answer", stack),
            "state D (disk sleep), wait channel request_wait_answer, kernel stack "
            "request_wait_answer < fuse_perform_write; it waits inside the kernel, for a device or "
            "a file server: bring that back, or restart the node");
}

TEST(StuckProcess, ReportsUnreadableProcFiles) {
  EXPECT_EQ(describe_thread("State:\tR (running)\nTracerPid:\t0\n", "0", ""),
            "state R (running), wait channel unknown, kernel stack not readable");
  EXPECT_EQ(describe_thread("", "", ""), "its state cannot be read");
}

TEST(StuckProcess, NamesTheUserWhoseProcessItMayNotSignal) {
  EXPECT_EQ(describe_foreign("Name:\tsh\nUid:\t1000\t0\t0\t0\nGid:\t0\t0\t0\t0\n", 1000),
            "cpprun, which runs as user 1000, may not signal it (EPERM), because it has become "
            "user 0 (sudo, setuid); end it as that user");
  EXPECT_NE(describe_foreign("", 1000).find("has become another user ("), std::string::npos);
}

}  // namespace
}  // namespace cpprun::test

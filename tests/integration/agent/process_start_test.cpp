// The state that a worker starts with, and the errors of a failed start.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "agent/process/spawn/spawn.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

class ProcessStart : public ProcessTest, public ::testing::WithParamInterface<bool> {
 protected:
  ProcessStart() { use_cgroup(GetParam()); }

  std::string error_of(const std::vector<WorkerSpec>& workers) {
    const Status started = try_start(workers);
    EXPECT_FALSE(started.ok());
    EXPECT_TRUE(host().is_idle());
    std::string text;
    if (!started.ok()) text = started.error().text;
    return text;
  }
  WorkerSpec program(std::vector<std::string> argv) {
    WorkerSpec spec = worker(0, {});
    spec.argv = std::move(argv);
    return spec;
  }
};
INSTANTIATE_TEST_SUITE_P(Both, ProcessStart, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "cgroup" : "plain"; });

TEST_P(ProcessStart, WorkersStartWithCleanState) {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const int leak = ::open("/dev/null", O_RDONLY);  // on purpose without O_CLOEXEC
  start({worker(0, {"state"})});
  run_until_quiet();
  ::close(leak);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_EQ(messages_[0],
            "state 0000000000000000 0000000000000000 0000000000000000 fds=3 death=9 session=own");
}

TEST_P(ProcessStart, WorkersInheritStdin) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int saved = ::dup(0);
  ::dup2(ends[0], 0);
  ASSERT_EQ(::write(ends[1], "question", 8), 8);
  const TemporaryFolder folder;
  WorkerSpec reader = worker(0, {"stdin"});
  reader.out.file = folder / "out";
  start({reader});
  run_until_quiet();
  ::dup2(saved, 0);
  for (int fd : {saved, ends[0], ends[1]}) ::close(fd);
  EXPECT_EQ(read_file(folder / "out"), "question");
}

TEST_P(ProcessStart, FindsTheProgramOnTheWorkersPath) {
  const TemporaryFolder folder;
  ASSERT_EQ(::symlink(bad_worker().c_str(), (folder / "findme").c_str()), 0);
  WorkerSpec spec = program({"findme", "exit 42"});
  spec.environment[0] = "PATH=/nowhere:" + folder.path();
  start({spec});
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, 42);
}

TEST_P(ProcessStart, NamesAMissingProgram) {
  EXPECT_NE(error_of({program({"no-such-program-anywhere"})}).find("no-such-program-anywhere"),
            std::string::npos);
  const std::string text = error_of({program({"/nowhere/prog"})});
  EXPECT_NE(text.find("/nowhere/prog: there is no such file"), std::string::npos) << text;
}

TEST_P(ProcessStart, NamesANonExecutableFile) {
  const TemporaryFolder folder;
  std::ofstream(folder / "data") << "x";
  EXPECT_NE(error_of({program({folder / "data"})}).find("may not be executed"), std::string::npos);
  EXPECT_NE(error_of({program({folder.path()})}).find("it is a folder"), std::string::npos);
  WorkerSpec on_path = program({"data"});
  on_path.environment[0] = "PATH=" + folder.path();
  EXPECT_NE(error_of({on_path}).find("may not be executed"), std::string::npos);
}

TEST_P(ProcessStart, ExplainsAScriptWithoutShebang) {
  const TemporaryFolder folder;
  std::ofstream(folder / "script") << "echo hello\n";
  std::ofstream(folder / "orphaned") << "#!/no/such/interpreter\n";
  for (const char* name : {"script", "orphaned"}) ::chmod((folder / name).c_str(), 0755);
  EXPECT_NE(error_of({program({folder / "script"})}).find("#!/bin/sh"), std::string::npos);
  EXPECT_NE(error_of({program({folder / "orphaned"})}).find("interpreter"), std::string::npos);
}

TEST_P(ProcessStart, OneFailureStopsTheStartedWorkers) {
  WorkerSpec broken = program({"no-such-program"});
  broken.local_rank = LocalRank(2);
  error_of({worker(0, {"report first; pause"}), worker(1, {"orphan 2; pause", "report kid; pause"}),
            broken});
  while (loop_.poll() > 0) {
  }
  for (const char* name : {"first", "kid"}) {
    const int pid = reported(name);
    EXPECT_TRUE(pid == 0 || !is_alive(pid)) << name;
  }
  EXPECT_TRUE(ends_.empty());
  EXPECT_EQ(quiet_count_, 0);
  start({worker(0, {"exit 0"})});  // the host can start another round
  run_until_quiet();
}

TEST_P(ProcessStart, CountsMissingDescriptors) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  host();
  rlimit low = before;
  low.rlim_cur = 40;
  ::setrlimit(RLIMIT_NOFILE, &low);
  std::vector<WorkerSpec> workers;
  for (int rank = 0; rank < 30; ++rank) {
    workers.push_back(worker(rank, {"pause"}));
    workers.back().out.to_console = true;
  }
  const std::string text = error_of(workers);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(text.find("30 workers need up to"), std::string::npos) << text;
  EXPECT_NE(text.find("limit is 40"), std::string::npos) << text;
}

TEST_P(ProcessStart, NamesAnUnwritableLogFile) {
  WorkerSpec spec = worker(0, {"exit 0"});
  spec.out.file = "/proc/nowhere/stdout.log";
  EXPECT_NE(error_of({spec}).find("/proc/nowhere/stdout.log"), std::string::npos);
}

TEST_P(ProcessStart, PassesManyArgumentsAndALargeEnvironment) {
  WorkerSpec spec = worker(0, {"exit 7"});
  for (int i = 0; i < 2000; ++i) {
    std::string entry = std::to_string(i);
    entry.append("=").append(500, 'v');
    spec.environment.push_back(entry);
  }
  start({spec});
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, 7);
  spec.environment.push_back("HUGE=" +
                             std::string(200'000, 'h'));  // above the kernel's limit for one word
  EXPECT_NE(error_of({spec}).find("too long"), std::string::npos);
}

}  // namespace
}  // namespace cpprun::test

// Stopping a round: all workers together, one deadline, then SIGKILL.
#include <signal.h>

#include <chrono>

#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ProcessStop : public ProcessTest, public ::testing::WithParamInterface<bool> {
 protected:
  ProcessStop() { use_cgroup(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Both, ProcessStop, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "cgroup" : "plain"; });

TEST_P(ProcessStop, TermEndsWillingWorkers) {
  start({worker(0, {"report a; pause"}), worker(1, {"report b; pause"})});
  wait_reported("a");
  wait_reported("b");
  host().stop(SIGTERM, 1h);
  run_until_quiet();
  for (int rank : {0, 1}) {
    EXPECT_EQ(end_of(rank).exit_code, -SIGTERM);
    EXPECT_TRUE(end_of(rank).is_stopped_by_us);
  }
}

TEST_P(ProcessStop, SigkillFollowsAnIgnoredSigterm) {
  start({worker(0, {"ignore 15; report a; pause"}), worker(1, {"ignore 15; report b; pause"})});
  wait_reported("a");
  wait_reported("b");
  const auto before = Clock::now();
  host().stop(SIGTERM, 300ms);
  run_until_quiet();
  EXPECT_GE(Clock::now() - before, 300ms);
  EXPECT_EQ(end_of(0).exit_code, -SIGKILL);
  EXPECT_TRUE(end_of(0).is_stopped_by_us);
  EXPECT_FALSE(end_of(0).is_oom_kill);
}

// Some kernels kill every process that starts in a cgroup that was killed once.
TEST_P(ProcessStop, ARoundRunsAfterAKill) {
  for (const char* name : {"a", "b", "c"}) {
    start(
        {worker(0, {"ignore 15; report " + std::string(name) + "; pause"}), worker(1, {"pause"})});
    wait_reported(name);
    host().stop(SIGTERM, 0s);
    run_until_quiet();
    EXPECT_TRUE(end_of(0).is_stopped_by_us);
  }
}

TEST_P(ProcessStop, ASecondCallShortensTheGrace) {
  start({worker(0, {"ignore 15; report a; pause"})});
  wait_reported("a");
  host().stop(SIGTERM, 1h);
  host().stop(SIGTERM, 2h);  // a longer one changes nothing
  host().stop(SIGTERM, 100ms);
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, -SIGKILL);
}

TEST_P(ProcessStop, ZeroGraceKillsImmediately) {
  start({worker(0, {"ignore 15; report a; pause"})});
  wait_reported("a");
  host().stop(SIGTERM, 1h);
  host().stop(SIGKILL, 0s);
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, -SIGKILL);
}

TEST_P(ProcessStop, ContinuesAndStopsSuspendedWorkers) {
  start({worker(0, {"report a; stop; pause"})});
  const int pid = wait_reported("a");
  run_until([&] {
    return read_file("/proc/" + std::to_string(pid) + "/stat").find(") T ") != std::string::npos;
  });
  host().stop(SIGTERM, 1h);
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, -SIGTERM);
}

TEST_P(ProcessStop, AWorkerThatDiedBeforeTheStopIsNotCountedAsStopped) {
  start({worker(0, {"report a; exit 9"}), worker(1, {"report b; pause"})});
  const int pid = wait_reported("a");
  wait_reported("b");
  // The worker is dead, but the loop has not run yet.
  while (is_alive(pid)) {
  }
  host().stop(SIGTERM, 1h);
  run_until_quiet();
  EXPECT_FALSE(end_of(0).is_stopped_by_us);
  EXPECT_EQ(end_of(0).exit_code, 9);
  EXPECT_TRUE(end_of(1).is_stopped_by_us);
}

TEST_P(ProcessStop, StopCanBeCalledInsideOnEnd) {
  also_on_end_ = [this](const WorkerExit& end) {
    if (!end.is_success() && !end.is_stopped_by_us) host().stop(SIGTERM, 1h);
  };
  std::vector<WorkerSpec> workers{worker(0, {"sleep_ms 30; exit 3"})};
  for (int rank = 1; rank < 8; ++rank) workers.push_back(worker(rank, {"pause"}));
  start(workers);
  run_until_quiet();
  ASSERT_EQ(ends_.size(), 8U);
  EXPECT_EQ(ends_[0].local_rank, LocalRank(0));
  EXPECT_EQ(end_of(7).exit_code, -SIGTERM);
}

TEST_P(ProcessStop, ForwardOnlyForwards) {
  start({worker(0, {"report a; pause"}), worker(1, {"ignore 10; report b; pause"})});
  wait_reported("a");
  wait_reported("b");
  host().forward(SIGUSR1);
  run_until([&] { return ends_.size() == 1; });
  EXPECT_EQ(ends_[0].exit_code, -SIGUSR1);
  EXPECT_FALSE(ends_[0].is_stopped_by_us);
  EXPECT_EQ(host().pids().size(), 1U);
  host().stop(SIGTERM, 1h);
  run_until_quiet();
}

TEST_P(ProcessStop, DestructorLeavesNothing) {
  start({worker(0, {"ignore 15; orphan 2; report a; pause", "ignore 15; report kid; pause"})});
  const int pid = wait_reported("a"), kid = wait_reported("kid");
  drop_host();
  EXPECT_FALSE(is_alive(pid));
  EXPECT_FALSE(is_alive(kid));
  EXPECT_TRUE(ends_.empty());
}

}  // namespace
}  // namespace cpprun::test

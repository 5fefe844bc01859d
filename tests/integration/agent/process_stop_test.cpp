// Stopping a round: all workers together, one deadline, then SIGKILL.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <future>

#include "agent/process/proc_files.hpp"
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

// Holds the start of worker 1 until release(), as a slow file system does.
class HeldStart {
 public:
  explicit HeldStart(ProcessHost::Options& options) {
    options.worker_fork = [state = state_](size_t) -> WorkerFork {
      return [state](const SpawnPlan&) -> ForkAttempt {
        if (state->starts++ == 1) state->gate.get_future().wait();
        return {};
      };
    };
  }
  ~HeldStart() { release(); }
  void release() {
    if (!std::exchange(is_released_, true)) state_->gate.set_value();
  }
  bool is_reached() const { return state_->starts == 2; }

 private:
  struct State {
    std::atomic<int> starts = 0;
    std::promise<void> gate;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  bool is_released_ = false;
};

TEST_P(ProcessStop, AWorkerWhoseStartIsUnderWayGetsTheSignal) {
  HeldStart held(options_);
  begin_start({worker(0, {"report a; pause"}), worker(1, {"pause"}), worker(2, {"pause"})});
  wait_reported("a");
  run_until([&] { return held.is_reached(); });
  host().stop(SIGTERM, 1h);
  held.release();
  run_until_quiet();
  ASSERT_EQ(ends_.size(), 2U) << "the third one was not started";
  for (int rank : {0, 1}) {
    EXPECT_EQ(end_of(rank).exit_code, -SIGTERM);
    EXPECT_TRUE(end_of(rank).is_stopped_by_us);
  }
}

TEST_P(ProcessStop, AStartThatDoesNotEndAfterAStopIsCancelled) {
  HeldStart held(options_);
  begin_start({worker(0, {"report a; pause"}), worker(1, {"pause"})});
  wait_reported("a");
  run_until([&] { return held.is_reached(); });
  host().stop(SIGTERM, 1h);
  run_until_quiet();  // within limits::kStopStartTimeout
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(end_of(0).exit_code, -SIGTERM);
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

bool is_suspended(int pid) {
  return read_file("/proc/" + std::to_string(pid) + "/stat").find(") T ") != std::string::npos;
}

TEST_P(ProcessStop, AWorkerIsSuspendedAlsoWhileOthersStart) {
  HeldStart held(options_);
  begin_start({worker(0, {"report a; pause"}), worker(1, {"pause"})});
  const int pid = wait_reported("a");
  run_until([&] { return held.is_reached(); });
  host().suspend_during([&] { run_until([&] { return is_suspended(pid); }); });
  run_until([&] { return !is_suspended(pid); });
  held.release();
  host().stop(SIGTERM, 1h);
  run_until_quiet();
}

TEST_P(ProcessStop, ContinuesAndStopsSuspendedWorkers) {
  start({worker(0, {"report a; stop; pause"})});
  const int pid = wait_reported("a");
  run_until([&] { return is_suspended(pid); });
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
  std::vector<WorkerSpec> workers{worker(0, {"report a; pause"})};
  for (int rank = 1; rank < 8; ++rank) workers.push_back(worker(rank, {"pause"}));
  start(workers);
  ::kill(wait_reported("a"), SIGKILL);
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

// A stop meets the spawn thread at different places.
TEST_P(ProcessStop, AStopMayComeWhileWorkersAreSpawned) {
  constexpr int kRounds = 24;
  std::vector<WorkerSpec> workers;
  for (int rank = 0; rank < 4; ++rank) workers.push_back(worker(rank, {"pause"}));
  for (int round = 1; round <= kRounds; ++round) {
    ends_.clear();
    begin_start(workers);
    for (int turn = 0; turn < round / 4; ++turn) loop_.run_one_for(1ms);
    host().stop(round % 2 == 0 ? SIGTERM : SIGKILL, round % 2 == 0 ? 600s : 0s);
    run_until([&] { return quiet_count_ == round; });
    EXPECT_LE(ends_.size(), workers.size());
    for (const WorkerExit& end : ends_) EXPECT_TRUE(end.is_stopped_by_us);
    EXPECT_TRUE(own_children().empty());
  }
}

TEST_P(ProcessStop, TheHostMayEndWhileWorkersAreSpawned) {
  for (int round = 0; round < 8; ++round) {
    begin_start({worker(0, {"report a; pause"}), worker(1, {"pause"}), worker(2, {"pause"})});
    for (int turn = 0; turn < round; ++turn) loop_.run_one_for(1ms);
    drop_host();
    run_until([this] { return reported("a") == 0 || !is_alive(reported("a")); });
    messages_.clear();
  }
}

}  // namespace
}  // namespace cpprun::test

// Ends the orphans of finished workers and spares the daemons of live ones.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "agent/process/cleanup/cgroup.hpp"
#include "agent/process/cleanup/helper_start.hpp"
#include "agent/process/proc_files.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ProcessSweep : public ProcessTest, public ::testing::WithParamInterface<bool> {
 protected:
  ProcessSweep() { use_cgroup(GetParam()); }
  bool has_children() { return !own_children().empty(); }
};
INSTANTIATE_TEST_SUITE_P(Both, ProcessSweep, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "cgroup" : "plain"; });

TEST_P(ProcessSweep, ChildrenOfASuccessfulWorkerGetSigterm) {
  start({worker(0, {"fork 2; await 1; exit 0", "report kid; pause"})});
  run_until_quiet(3);
  EXPECT_FALSE(is_alive(wait_reported("kid")));
}

TEST_P(ProcessSweep, TerminatesDetachedGrandchildren) {
  start({worker(0, {"orphan 2; await 1; exit 0", "report kid; pause"})});
  run_until_quiet(3);
  EXPECT_FALSE(is_alive(wait_reported("kid")));
}

TEST_P(ProcessSweep, SparesAHelperWhosePidIsNotKnownYet) {
  StartTicket ticket;
  const HelperStart start_of_helper(ticket);
  int helper = 0;
  on_start_ = [&](int) {
    helper = ::fork();
    if (helper == 0) {
      ::pause();
      ::_exit(0);
    }
  };
  start({worker(0, {"exit 1"})});
  run_until([&] { return ends_.size() == 1; });
  EXPECT_EQ(quiet_count_, 0) << "the child may be an orphan of the worker";
  ticket.begin_child(helper);
  run_until_quiet();
  EXPECT_TRUE(is_alive(helper));
  ::kill(helper, SIGKILL);
  ::waitpid(helper, nullptr, 0);
}

TEST_P(ProcessSweep, KillsOrphansThatIgnoreSigterm) {
  start({worker(0, {"orphan 2; await 1; exit 0", "ignore 15; report kid; pause"})});
  const int kid = wait_reported("kid");
  const auto before = Clock::now();
  run_until([&] { return ends_.size() == 1; });
  run_until_quiet();
  EXPECT_GE(Clock::now() - before, 4s);
  EXPECT_FALSE(is_alive(kid));
}

TEST_P(ProcessSweep, KillsOrphansImmediatelyAfterAFailure) {
  start({worker(0, {"orphan 2; fork 3; await 2; exit 1", "ignore 15; report kid; pause",
                    "ignore 15; report other; pause"})});
  const int kid = wait_reported("kid"), other = wait_reported("other");
  run_until_quiet(2);
  EXPECT_FALSE(is_alive(kid));
  EXPECT_FALSE(is_alive(other));
}

TEST_P(ProcessSweep, TerminatesTreesOfDetachedProcesses) {
  start({worker(0, {"orphan 2; report a; pause", "ignore 15; fork 3; orphan 3; report kid; pause",
                    "ignore 15; setsid; fork 4; report deep; pause",
                    "ignore 15; setsid; report deeper; pause"})});
  wait_reported("a");
  wait_reported("kid");
  run_until([&] {
    return std::count_if(messages_.begin(), messages_.end(),
                         [](const std::string& m) { return m.starts_with("deeper"); }) == 2;
  });
  host().stop(SIGTERM, 10s);
  run_until_quiet(3);
  for (const std::string& message : messages_) {
    EXPECT_FALSE(is_alive(atoi(message.substr(message.find(' ')).c_str()))) << message;
  }
  EXPECT_FALSE(has_children());
}

TEST_P(ProcessSweep, FindsProcessesWithAnEmptyEnvironment) {
  start({worker(0, {"orphan 2; sleep_ms 100; exit 1", "bare 3", "ignore 15; report kid; pause"})});
  run_until_quiet(3);
  EXPECT_FALSE(has_children());
}

TEST_P(ProcessSweep, SparesTheDaemonOfALiveWorker) {
  start({worker(0, {"orphan 2; report a; pause", "report daemon; pause"}),
         worker(1, {"sleep_ms 50; exit 0"})});
  wait_reported("a");
  const int daemon = wait_reported("daemon");
  run_until([&] { return ends_.size() == 1; });
  // When a second child has come and gone, the host has looked for the sibling's orphans.
  const int probe = ::fork();
  if (probe == 0) ::_exit(0);
  run_until([&] { return ::kill(probe, 0) < 0; });
  EXPECT_TRUE(is_alive(daemon));
  host().stop(SIGTERM, 10s);
  run_until_quiet(3);
  EXPECT_FALSE(is_alive(daemon));
}

TEST_P(ProcessSweep, TerminatesOrphansWhileOtherWorkersLive) {
  start({worker(0, {"orphan 2; await 1; exit 0", "report kid; pause"}),
         worker(1, {"report b; pause"})});
  const int kid = wait_reported("kid");
  wait_reported("b");
  run_until([&] { return !is_alive(kid); }, 3);
  EXPECT_EQ(host().pids().size(), 1U);
  host().stop(SIGTERM, 10s);
  run_until_quiet(3);
}

TEST_P(ProcessSweep, ReapsAdoptedZombies) {
  start({worker(0, {"orphan 2; orphan 2; orphan 2; report a; pause", "exit 0"})});
  wait_reported("a");
  run_until([&] { return own_children().empty(); });
  host().stop(SIGTERM, 10s);
  run_until_quiet(3);
}

TEST_P(ProcessSweep, SparesEarlierChildren) {
  const int unrelated = ::fork();
  if (unrelated == 0) {
    for (;;) ::pause();
  }
  start({worker(0, {"exit 1"})});
  run_until_quiet(3);
  EXPECT_TRUE(is_alive(unrelated));
  ::kill(unrelated, SIGKILL);
  ::waitpid(unrelated, nullptr, 0);
}

TEST_P(ProcessSweep, RemovesTheCgroupAtTheEnd) {
  const std::string folder = cgroup_folder(options_.token);
  if (folder.empty()) GTEST_SKIP() << "no cgroup v2 folder can be made here";
  start({worker(0, {"exit 0"})});
  EXPECT_EQ(::access(folder.c_str(), F_OK) == 0, GetParam());
  run_until_quiet(3);
  drop_host();
  EXPECT_NE(::access(folder.c_str(), F_OK), 0);
}

TEST(ProcFiles, ReadsTheOriginFromTheEnvironment) {
  const std::string_view plain("A=1\0CPPRUN_TOKEN=outer.mine\0LOCAL_RANK=3\0", 40);
  EXPECT_TRUE(parse_origin(plain, "mine").is_ours);
  EXPECT_FALSE(parse_origin(plain, "mine").is_nested);
  EXPECT_EQ(parse_origin(plain, "mine").local_rank, 3);
  EXPECT_TRUE(parse_origin(plain, "outer").is_nested);
  EXPECT_FALSE(parse_origin(plain, "min").is_ours);
  EXPECT_FALSE(parse_origin("", "mine").is_ours);
  EXPECT_FALSE(parse_origin(std::string_view("XCPPRUN_TOKEN=mine\0", 19), "mine").is_ours);
}

TEST(ProcFiles, ReadsStatForAnyProcessName) {
  const auto stat = parse_stat("12 (a) b) c) S 3 4 5 0 -1");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 3);
  EXPECT_EQ(stat->group, 4);
  EXPECT_EQ(stat->session, 5);
  EXPECT_FALSE(parse_stat("").has_value());
}

}  // namespace
}  // namespace cpprun::test

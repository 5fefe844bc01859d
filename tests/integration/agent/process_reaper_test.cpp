// The reaper process after the death of the agent, or while the agent is frozen.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>

#include "agent/process/cleanup/cgroup.hpp"
#include "agent/process/cleanup/reaper_handle.hpp"
#include "agent/process/cleanup/reaper_process.hpp"
#include "agent/process/proc_files.hpp"
#include "common/machine/clock.hpp"
#include "tests/support/process_fixture.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

bool becomes_readable(int fd, int milliseconds) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, milliseconds) == 1;
}

class AgentReaper : public ProcessTest, public ::testing::WithParamInterface<bool> {
 protected:
  ~AgentReaper() override {
    if (agent_ > 0) ::kill(agent_, SIGKILL);
    reap();
  }

  // An agent in its own process with two workers that run `scripts`.
  void start_agent(std::vector<std::string> scripts) {
    std::vector<std::string> words{mini_agent(), GetParam() ? "1" : "0", options_.token};
    words.insert(words.end(), scripts.begin(), scripts.end());
    std::vector<std::string> variables{"TEST_SOCKET=" + socket_name_};
    std::vector<char*> argv, envp;
    for (std::string& word : words) argv.push_back(word.data());
    for (std::string& entry : variables) envp.push_back(entry.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (out_ >= 0) posix_spawn_file_actions_adddup2(&actions, out_, 1);
    ASSERT_EQ(::posix_spawn(&agent_, words[0].c_str(), &actions, nullptr, argv.data(), envp.data()),
              0);
    posix_spawn_file_actions_destroy(&actions);
    wait_reported("agent");
  }

  int reaper_pid() const {
    for (const std::string& message : messages_) {
      if (message.starts_with("agent ")) return atoi(message.c_str() + message.rfind(' '));
    }
    return 0;
  }

  std::vector<int> wait_reports(const std::string& name, size_t count) {
    std::vector<int> pids;
    run_until([&] {
      pids.clear();
      for (const std::string& message : messages_) {
        if (message.starts_with(name + " "))
          pids.push_back(atoi(message.c_str() + name.size() + 1));
      }
      return pids.size() == count;
    });
    return pids;
  }

  void reap() {
    if (agent_ > 0) ::waitpid(agent_, nullptr, 0);
    agent_ = 0;
  }

  int agent_ = 0;
  int out_ = -1;
};
INSTANTIATE_TEST_SUITE_P(Both, AgentReaper, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "cgroup" : "plain"; });

TEST_P(AgentReaper, KillsEverythingWithinASecondAfterSigkill) {
  start_agent({"ignore 15; orphan 2; fork 3; report worker; pause",
               "ignore 15; report daemon; pause", "ignore 15; setsid; report child; pause"});
  std::vector<int> pids;
  for (const char* name : {"worker", "daemon", "child"}) {
    for (int pid : wait_reports(name, 2)) pids.push_back(pid);
  }
  const int reaper = reaper_pid();
  for (int pid : pids) EXPECT_TRUE(is_alive(pid));
  ::kill(agent_, SIGKILL);
  reap();
  pids.push_back(reaper);
  run_until([&] { return std::none_of(pids.begin(), pids.end(), is_alive); });
  const std::string folder = cgroup_folder(options_.token);
  EXPECT_TRUE(folder.empty() || ::access(folder.c_str(), F_OK) != 0);
}

TEST_P(AgentReaper, LeavesNoTraceAfterSuccess) {
  start_agent({"exit 0"});
  const int reaper = reaper_pid();
  int status = -1;
  ASSERT_EQ(::waitpid(agent_, &status, 0), agent_);
  agent_ = 0;
  EXPECT_EQ(status, 0);
  EXPECT_LT(::kill(reaper, 0), 0);
  const std::string folder = cgroup_folder(options_.token);
  EXPECT_TRUE(folder.empty() || ::access(folder.c_str(), F_OK) != 0);
}

TEST_P(AgentReaper, AReaderOfTheAgentsOutputSeesItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  out_ = ends[1];
  start_agent({"report worker; pause"});
  ::close(ends[1]);
  wait_reports("worker", 2);
  const int reaper = reaper_pid();
  const auto leads_nowhere = [&](int fd) {
    char target[64] = {};
    const std::string link = "/proc/" + std::to_string(reaper) + "/fd/" + std::to_string(fd);
    return ::readlink(link.c_str(), target, sizeof target - 1) > 0 &&
           std::string(target) == "/dev/null";
  };
  // Once it runs, the reaper process holds none of the agent's output.
  run_until([&] { return leads_nowhere(0) && leads_nowhere(1) && leads_nowhere(2); });
  ::kill(agent_, SIGKILL);
  reap();
  EXPECT_TRUE(becomes_readable(ends[0], 60'000));
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

class ReaperTest : public ProcessTest {
 protected:
  std::unique_ptr<ReaperHandle> make() {
    auto reaper = ReaperHandle::start(options_.token, "");
    EXPECT_TRUE(reaper.ok());
    return std::move(*reaper);
  }
  // A busy machine delays a timer by less.
  void suspend_past_deadline(ReaperHandle& reaper) {
    ::kill(reaper.pid(), SIGSTOP);
    const Instant deadline = boot_now() + 50ms;
    reaper.set_deadline(deadline);
    run_until([&] { return boot_now() >= deadline + 1s; });
    ::kill(reaper.pid(), SIGCONT);
  }
  bool is_stopped(int pid) {
    const std::string stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
    return stat.find(") T") != std::string::npos;
  }
};

TEST_F(ReaperTest, KillsOnlyTheWorkersAtTheDeadline) {
  const auto reaper = make();
  start({worker(0, {"ignore 15; orphan 2; report a; pause", "ignore 15; report kid; pause"})});
  wait_reported("a");
  const int kid = wait_reported("kid");
  const Instant deadline = boot_now() + 200ms;
  reaper->set_deadline(deadline);
  // Simulates a frozen agent: the loop does not run.
  while (is_alive(kid)) ASSERT_LT(boot_now(), deadline + 60s);
  EXPECT_GE(boot_now(), deadline);
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, -SIGKILL);
  EXPECT_FALSE(end_of(0).is_stopped_by_us);
  EXPECT_TRUE(is_alive(reaper->pid()));
  EXPECT_TRUE(reaper->set_deadline(boot_now() + 600s));
  EXPECT_FALSE(reaper->set_deadline(Instant::never()));
}

// It was suspended past the deadline, as the agent may have been. Where this process runs too late
// to extend the deadline, it tries again.
TEST_F(ReaperTest, AfterASuspensionItStopsTheWorkersUntilTheDeadlineIsExtended) {
  const auto reaper = make();
  bool is_in_time = false;
  for (int nth = 0; !is_in_time; ++nth) {
    ASSERT_LT(nth, 5);
    const std::string name = "a" + std::to_string(nth);
    start({worker(0, {"report " + name + "; pause"})});
    const int pid = wait_reported(name);
    suspend_past_deadline(*reaper);
    run_until([&] { return !is_alive(pid) || is_stopped(pid); });
    const bool has_killed = reaper->set_deadline(boot_now() + 600s);
    run_until([&] { return !is_alive(pid) || !is_stopped(pid); });
    is_in_time = is_alive(pid);
    EXPECT_NE(has_killed, is_in_time);
    reaper->set_deadline(boot_now());
    run_until_quiet();
    ends_.clear();
  }
}

TEST_F(ReaperTest, AfterASuspensionItKillsTheWorkersIfTheDeadlineStays) {
  const auto reaper = make();
  start({worker(0, {"report a; pause"})});
  wait_reported("a");
  suspend_past_deadline(*reaper);
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, -SIGKILL);
}

TEST_F(ReaperTest, AnExtendedDeadlineDelaysTheKill) {
  const auto reaper = make();
  // Where this process runs too late to extend a deadline, it tries a longer one.
  bool is_in_time = false;
  for (Duration ahead = 100ms; !is_in_time; ahead = 4 * ahead) {
    ASSERT_LT(ahead, 60s);
    const std::string name = "a" + std::to_string(ahead.count());
    start({worker(0, {"report " + name + "; pause"})});
    const int pid = wait_reported(name);
    is_in_time = true;
    Instant deadline = Instant::never();
    for (int i = 0; i < 10 && is_in_time; ++i) {
      const Instant extended = boot_now() + ahead;
      const bool has_killed = reaper->set_deadline(extended);
      EXPECT_FALSE(has_killed && boot_now() < deadline);
      is_in_time = boot_now() < deadline;
      deadline = extended;
      loop_.run_for(ahead / 2);
    }
    reaper->set_deadline(Instant::never());
    if (is_in_time && boot_now() < deadline) {
      EXPECT_TRUE(is_alive(pid));
      loop_.run_for(2 * ahead);
      EXPECT_TRUE(is_alive(pid));
    } else {
      is_in_time = false;
    }
    reaper->set_deadline(boot_now());
    run_until_quiet();
    EXPECT_EQ(end_of(0).exit_code, -SIGKILL);
    ends_.clear();
  }
}

TEST_F(ReaperTest, ASecondDeadlineWorksToo) {
  const auto reaper = make();
  for (int round = 1; round <= 2; ++round) {
    start({worker(0, {"pause"})});
    reaper->set_deadline(boot_now() + 50ms);
    run_until([&] { return quiet_count_ == round; });
    reaper->set_deadline(Instant::never());
  }
}

TEST_F(ReaperTest, IsReplacedWhenItDies) {
  const auto reaper = make();
  start({worker(0, {"report a; pause"})});
  wait_reported("a");
  const UniqueFd end = reaper->take_pidfd();
  EXPECT_FALSE(becomes_readable(end.get(), 0));
  const int first = reaper->pid();
  ::kill(first, SIGKILL);
  ASSERT_TRUE(becomes_readable(end.get(), 60'000));
  ASSERT_TRUE(reaper->renew().ok());
  EXPECT_NE(reaper->pid(), first);
  reaper->set_deadline(boot_now());
  run_until_quiet();
  EXPECT_EQ(end_of(0).exit_code, -SIGKILL);
}

TEST_F(ReaperTest, IgnoresSignalsFromUsers) {
  const auto reaper = make();
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::kill(reaper->pid(), signal);
  EXPECT_FALSE(becomes_readable(reaper->take_pidfd().get(), 100));
}

TEST_F(ReaperTest, SleepsWithoutPolling) {
  const auto reaper = make();
  const std::string status = "/proc/" + std::to_string(reaper->pid()) + "/status";
  const auto switches = [&] {
    const std::string text = read_file(status);
    return text.substr(text.find("\nvoluntary_ctxt_switches"));
  };
  run_until([&] { return read_file(status).find("State:\tS") != std::string::npos; });
  loop_.run_for(50ms);
  const std::string before = switches();
  loop_.run_for(500ms);
  EXPECT_EQ(switches(), before);
}

TEST_F(ReaperTest, OrphanCleanupSparesTheReaper) {
  const auto reaper = make();
  start({worker(0, {"exit 1"})});
  run_until_quiet();
  EXPECT_TRUE(is_alive(reaper->pid()));
}

TEST(ReaperScan, FindsTheTokenInEnvironmentsOfAnySize) {
  for (size_t size : {0U, 10U, 16'370U, 16'384U, 20'000U, 300'000U}) {
    const TemporaryFolder folder;
    for (const char* chain : {"mine", "outer.mine", "mine.inner", "other"}) {
      std::string text = "A=";
      text.append(size, 'a').push_back('\0');
      text.append("CPPRUN_TOKEN=").append(chain).push_back('\0');
      text.append("B=1").push_back('\0');
      const std::string path = folder / "environ";
      const int out = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
      ASSERT_EQ(::write(out, text.data(), text.size()), static_cast<ssize_t>(text.size()));
      ::lseek(out, 0, SEEK_SET);
      EXPECT_EQ(environment_carries(out, "mine"), std::string(chain) != "other") << size << chain;
      ::close(out);
    }
  }
}

}  // namespace
}  // namespace cpprun::test

#include "agent/process/spawn/helper_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "agent/process/cleanup/helper_start.hpp"
#include "agent/process/diagnostics/user_command.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"

namespace cpprun {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLong = 100s;

Result<HelperProcess> shell(const std::string& script,
                            const std::vector<std::string>& variables = {}) {
  return HelperProcess::start({"sh", "-c", script}, variables);
}

std::string output_of(const Result<HelperProcess>& helper) {
  std::string text;
  EXPECT_TRUE(read_until(helper->output(), boot_now() + kLong, SIZE_MAX, text));
  return text;
}

TEST(HelperProcessTest, GivesOutputOfBothStreamsAndStatus) {
  Result<HelperProcess> helper = shell("cat; echo out; echo err >&2; exit 3");
  ASSERT_TRUE(helper) << helper.error().text;
  EXPECT_EQ(output_of(helper), "out\nerr\n");
  pollfd ended{helper->pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, static_cast<int>(kLong / 1ms)), 1);
  EXPECT_EQ(helper->end(), 3 << 8);
}

TEST(HelperProcessTest, VariablesReplaceThoseOfTheAgent) {
  ::setenv("HELPER_TEST", "ours", 1);
  EXPECT_EQ(output_of(shell("echo $HELPER_TEST $HELPER_TEST_2")), "ours\n");
  EXPECT_EQ(output_of(shell("echo $HELPER_TEST $HELPER_TEST_2",
                            {"HELPER_TEST=theirs", "HELPER_TEST_2=more"})),
            "theirs more\n");
  ::unsetenv("HELPER_TEST");
}

TEST(HelperProcessTest, IsRegisteredUntilItsEndAndKilledWithItsGroup) {
  Result<HelperProcess> helper = shell("sleep 1000 & echo $$ $!; wait");
  ASSERT_TRUE(helper) << helper.error().text;
  std::string text;
  while (text.find('\n') == std::string::npos) {
    ASSERT_FALSE(read_until(helper->output(), boot_now() + 10ms, SIZE_MAX, text));
  }
  char* rest = nullptr;
  const int pid = static_cast<int>(std::strtol(text.c_str(), &rest, 10));
  const int child = std::atoi(rest);
  EXPECT_TRUE(is_helper(pid));
  EXPECT_EQ(::getsid(child), pid);
  EXPECT_EQ(helper->end(), SIGKILL);
  EXPECT_FALSE(is_helper(pid));
  EXPECT_EQ(output_of(helper), "") << "the child has closed the pipe";
}

TEST(HelperProcessTest, AMissingProgramIsAnErrorThatNamesIt) {
  const Result<HelperProcess> helper = HelperProcess::start({"no-such-tool"});
  ASSERT_FALSE(helper);
  EXPECT_EQ(helper.error().text, "cannot start no-such-tool: no such program on PATH");
}

TEST(NodeCheckRunTest, ReportsWhyACheckHasFailed) {
  const auto check = [](const std::string& script, Duration timeout) {
    return run_user_command({"sh", "-c", script}, "token", timeout);
  };
  EXPECT_EQ(check("echo fine", kLong), "");
  EXPECT_EQ(check("test $CPPRUN_TOKEN = token", kLong), "");
  EXPECT_EQ(check("echo one; echo two; exit 7", kLong), "two (exit code 7)");
  EXPECT_EQ(check("kill -TERM $$", kLong), "killed by SIGTERM");
  EXPECT_EQ(check("exec >&- 2>&-; exit 2", kLong), "exit code 2") << "a closed output is no end";
  EXPECT_EQ(check("echo slow; sleep 1000", 1s), "slow (it did not end within 1 s)");
  EXPECT_EQ(run_user_command({"no-such-check"}, "", kLong),
            "cannot start no-such-check: no such program on PATH");
}

}  // namespace
}  // namespace cpprun

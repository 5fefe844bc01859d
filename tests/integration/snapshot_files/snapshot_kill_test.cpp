// Kills a real writer of a snapshot at each of its system calls in turn: the folder holds the old
// snapshot or the new one, complete, and no lock on the rest.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/saves.hpp"
#include "tests/support/temp_folder.hpp"

namespace cpprun::snapshot_files {
namespace {

using test::newest;
using test::TempFolder;

enum class End { Killed, Done, NotTraced, Failed };

[[noreturn]] void become_writer(const std::string& dir) {
  // The leak sanitizer uses ptrace, which this test needs itself.
  static char no_leaks[] = "ASAN_OPTIONS=detect_leaks=0";
  char* environment[] = {no_leaks, nullptr};
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
  ::execle(SNAPSHOT_WRITER, SNAPSHOT_WRITER, dir.c_str(), "3", "c", nullptr, environment);
  ::_exit(78);
}

// Runs the writer up to its system call number `at` and kills it before the call has an effect.
End kill_at(const std::string& dir, int at) {
  const pid_t writer = ::fork();
  if (writer == 0) become_writer(dir);
  int status = 0;
  if (::waitpid(writer, &status, 0) != writer || !WIFSTOPPED(status)) return End::NotTraced;
  ::ptrace(PTRACE_SETOPTIONS, writer, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  int stops = 0;  // ptrace stops at the beginning and at the end of each call
  while (::ptrace(PTRACE_SYSCALL, writer, nullptr, nullptr) == 0 &&
         ::waitpid(writer, &status, 0) == writer && WIFSTOPPED(status)) {
    const bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    if (!is_call || stops++ != 2 * at) continue;
    ::kill(writer, SIGKILL);
    ::waitpid(writer, &status, 0);
    return End::Killed;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? End::Done : End::Failed;
}

TEST(SnapshotKill, AKillAtAnySystemCallLeavesTheOldOrTheNewSnapshot) {
  FileLayer& files = real_files();
  int olds = 0, news = 0;
  for (int at = 0; at < 10'000;) {
    const TempFolder folder;
    const std::string dir = folder.path() + "/runs";
    ASSERT_TRUE(test::save(files, dir, 1, 'a').ok());
    ASSERT_TRUE(test::save(files, dir, 2, 'b').ok());
    for (std::string found = "2b"; found == "2b"; ++at) {
      const End end = kill_at(dir, at);
      if (end == End::NotTraced) GTEST_SKIP() << "tracing processes is not allowed here";
      ASSERT_NE(end, End::Failed) << at;
      found = newest(files, dir);
      ASSERT_TRUE(found == "2b" || found == "3c") << found << " after call " << at;
      EXPECT_TRUE(scan(files, dir)->incomplete.empty()) << at;
      ++(found == "2b" ? olds : news);
      const std::vector<Entry> left = *files.list(dir);
      for (const Entry& entry : left) {
        EXPECT_EQ(files.lock_state(dir + "/" + entry.name), LockState::Free) << at;
      }
      if (end != End::Done) continue;
      EXPECT_EQ(found, "3c");
      EXPECT_GT(olds, 40);  // the calls of a save, without those of the program's start
      EXPECT_GT(news, 3);
      return;
    }
  }
  FAIL() << "the writer never ended";
}

}  // namespace
}  // namespace cpprun::snapshot_files

// Quoting for a POSIX shell. tests/labs/test_ssh.py has a real shell read it.
#include "launcher/ssh/plan/shell_command.hpp"

#include <gtest/gtest.h>

namespace cpprun::ssh {
namespace {

// What a POSIX shell makes of one quoted word: plain text and '...' alone occur, and \' outside.
std::string read_by_shell(std::string_view word) {
  std::string out;
  bool is_quoted = false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\'') {
      is_quoted = !is_quoted;
    } else if (!is_quoted && word[i] == '\\') {
      out += word[++i];
    } else {
      EXPECT_TRUE(is_quoted ||
                  std::string_view(" $`\"*;&|<>()\n~#").find(word[i]) == std::string_view::npos)
          << word;
      out += word[i];
    }
  }
  EXPECT_FALSE(is_quoted) << word;
  return out;
}

TEST(ShellCommand, QuotesWhatMeansSomethingToAShell) {
  EXPECT_EQ(shell_quoted("--lr=0.1,b@c/d:+e%"), "--lr=0.1,b@c/d:+e%");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("two words"), "'two words'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_quoted("a\nb"), "'a\nb'");
}

TEST(ShellCommand, EveryByteArrivesAsItIs) {
  std::string all;
  for (int c = 1; c < 256; ++c) {
    const std::string one(1, static_cast<char>(c));
    EXPECT_EQ(read_by_shell(shell_quoted(one)), one) << c;
    all += one;
  }
  EXPECT_EQ(read_by_shell(shell_quoted(all)), all);
  EXPECT_EQ(read_by_shell(shell_quoted("'''")), "'''");
}

TEST(ShellCommand, EntersTheDirectoryFirst) {
  EXPECT_EQ(shell_command("/data/my job", {"/opt/cpprun", "-m", "a b"}),
            "cd '/data/my job' || exit 124; exec /opt/cpprun -m 'a b'");
}

}  // namespace
}  // namespace cpprun::ssh

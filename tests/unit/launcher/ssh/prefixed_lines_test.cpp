// The output of one host as lines with its name.
#include "launcher/ssh/prefixed_lines.hpp"

#include <gtest/gtest.h>

#include "common/limits/agent.hpp"
#include "common/limits/ssh.hpp"

namespace cpprun::ssh {
namespace {

const Instant kNow = Instant() + std::chrono::seconds(1);
const Instant kNextState = kNow + limits::kMergedProgressBar;
const Instant kLater = kNow + limits::kMergedPartialLine;

TEST(PrefixedLines, WholeLinesGetThePrefix) {
  PrefixedLines lines("a: ");
  EXPECT_EQ(lines.feed("one\ntwo\nthr", kNow), "a: one\na: two\n");
  EXPECT_EQ(lines.feed("ee\n\n", kNow), "a: three\na: \n");
  EXPECT_TRUE(lines.part_deadline().is_never());
  EXPECT_EQ(lines.finish(), "");
}

TEST(PrefixedLines, AnUnfinishedLineIsShownAfterATime) {
  PrefixedLines lines("a: ");
  EXPECT_EQ(lines.feed("wait", kNow), "");
  EXPECT_EQ(lines.part_deadline(), kNextState);
  EXPECT_EQ(lines.feed("ing", kNow + limits::kMergedProgressBar / 2), "");
  EXPECT_EQ(lines.part_deadline(), kNextState);
  EXPECT_EQ(lines.show_part(kNextState), "");
  EXPECT_EQ(lines.part_deadline(), kNextState + limits::kMergedProgressBar);
  EXPECT_EQ(lines.show_part(kLater), "a: waiting\n");
  EXPECT_TRUE(lines.part_deadline().is_never());
}

TEST(PrefixedLines, ALineIsNotCutWhileNothingIsRead) {
  PrefixedLines lines("a: ");
  EXPECT_EQ(lines.feed("wait", kNow), "");
  lines.postpone_part(kLater);
  EXPECT_EQ(lines.show_part(kLater), "");
  EXPECT_EQ(lines.feed("ing\n", kLater), "a: waiting\n");
}

TEST(PrefixedLines, OnlyTheNewestStateOfAProgressBarIsShown) {
  PrefixedLines lines("a: ");
  EXPECT_EQ(lines.feed("10%\r20%\r30%\r", kNow), "");
  EXPECT_EQ(lines.show_part(kNextState), "a: 20%\n");
  EXPECT_EQ(lines.feed("40%\r100%\ndone\r\n", kNextState), "a: 100%\na: done\n");
}

TEST(PrefixedLines, TheEndOfTheStreamEndsTheLine) {
  PrefixedLines lines("a: ");
  EXPECT_EQ(lines.feed("last", kNow), "");
  EXPECT_EQ(lines.finish(), "a: last\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(PrefixedLines, ALineWithoutEndIsCut) {
  PrefixedLines lines("a: ");
  const std::string text(limits::kLineBytes, 'x');
  EXPECT_EQ(lines.feed(text + "y", kNow), "a: " + text + "\n");
  EXPECT_EQ(lines.finish(), "a: y\n");
}

}  // namespace
}  // namespace cpprun::ssh

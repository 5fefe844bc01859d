// Colours and line breaks of cpprun's own texts.
#include "common/text_style.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

TEST(TextStyle, WithoutColourTheTextIsUnchanged) {
  EXPECT_EQ(styled(TextStyle::Error, "error:", false), "error:");
  EXPECT_EQ(styled(TextStyle::Error, "error:", true), "\033[1;31merror:\033[0m");
  EXPECT_EQ(styled(TextStyle::Good, "", true), "");
}

TEST(TextStyle, WrapsAtBlanks) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("a\n  b", 80), (Lines{"a", "  b"})) << "own line breaks and blanks stay";
  EXPECT_EQ(wrapped("a-very-long-word b", 4), (Lines{"a-very-long-word", "b"}));
  EXPECT_EQ(indented("one two three", 2, 9), "one two\n  three");
}

TEST(TextStyle, LinesOfColumnsBreakBelowTheirLastColumn) {
  EXPECT_EQ(hanging("one two", 9), "one two");
  EXPECT_EQ(hanging("one two three", 9), "one two\nthree");
  EXPECT_EQ(hanging("a   b  one two three\n", 14), "a   b  one two\n       three\n");
  EXPECT_EQ(hanging("  one two three", 9), "  one two\n  three");
  EXPECT_EQ(hanging("a b c d e  f", 8), "a b c d\ne  f") << "a gap far to the right is no column";
}

}  // namespace
}  // namespace cpprun::test

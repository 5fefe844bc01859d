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

}  // namespace
}  // namespace cpprun::test

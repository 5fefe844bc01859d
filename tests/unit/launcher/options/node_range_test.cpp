// The number of nodes, or its range, as users write it.
#include "launcher/options/node_range.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using Range = std::pair<int64_t, int64_t>;

TEST(NodeRange, OneNumberIsMinimumAndMaximum) {
  EXPECT_EQ(parse_node_range("1"), Range(1, 1));
  EXPECT_EQ(parse_node_range("4"), Range(4, 4));
}

TEST(NodeRange, TwoNumbersAreMinimumAndMaximum) {
  EXPECT_EQ(parse_node_range("1:4"), Range(1, 4));
  EXPECT_EQ(parse_node_range("3:3"), Range(3, 3));
}

TEST(NodeRange, OtherTextsAreNoRange) {
  for (const char* text : {"", ":", "2:", ":2", "0", "0:2", "-1", "3:2", "1:2:3", "two", "1:many"})
    EXPECT_EQ(parse_node_range(text), std::nullopt) << text;
}

}  // namespace
}  // namespace cpprun::test

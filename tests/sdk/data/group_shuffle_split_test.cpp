#include "cpprun/data/group_shuffle_split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace cpprun::data {
namespace {

std::vector<std::string> patients(size_t samples, size_t count) {
  std::vector<std::string> names(samples);
  std::mt19937 chance(11);
  for (std::string& name : names) name = "patient " + std::to_string(chance() % count);
  return names;
}

std::set<std::string> names_of(const std::vector<std::string>& groups,
                               const std::vector<size_t>& side) {
  std::set<std::string> names;
  for (const size_t index : side) names.insert(groups.at(index));
  return names;
}

TEST(GroupShuffleSplit, NoGroupIsOnBothSides) {
  const auto groups = patients(500, 60);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const GroupShuffleSplit split = group_shuffle_split(groups, 0.8, seed);
    EXPECT_EQ(split.train.size() + split.validation.size(), groups.size());
    const auto train = names_of(groups, split.train);
    for (const std::string& name : names_of(groups, split.validation)) {
      EXPECT_EQ(train.count(name), 0U) << name;
    }
    EXPECT_EQ(train.size(), 48U);
  }
}

TEST(GroupShuffleSplit, DependsOnNamesAndSeedOnly) {
  const auto groups = patients(300, 40);
  const GroupShuffleSplit split = group_shuffle_split(groups, 0.7, 1);
  EXPECT_EQ(split.fingerprint(), group_shuffle_split(groups, 0.7, 1).fingerprint());
  EXPECT_NE(split.fingerprint(), group_shuffle_split(groups, 0.7, 2).fingerprint());

  auto other_rows = groups;
  std::shuffle(other_rows.begin(), other_rows.end(), std::mt19937(5));
  const GroupShuffleSplit other = group_shuffle_split(other_rows, 0.7, 1);
  EXPECT_EQ(names_of(groups, split.train), names_of(other_rows, other.train));
}

// Numbers that every machine must reproduce: a split is part of a result.
TEST(GroupShuffleSplit, IsTheSameOnEveryPlatform) {
  const GroupShuffleSplit split = group_shuffle_split({"d", "a", "c", "b", "a", "e"}, 0.6, 0);
  EXPECT_EQ(split.train, (std::vector<size_t>{1, 3, 4, 5}));
  EXPECT_EQ(split.validation, (std::vector<size_t>{0, 2}));
}

TEST(GroupShuffleSplit, HandlesExtremeFractions) {
  const auto groups = patients(50, 7);
  EXPECT_TRUE(group_shuffle_split(groups, 0, 3).train.empty());
  EXPECT_TRUE(group_shuffle_split(groups, 1, 3).validation.empty());
  EXPECT_TRUE(group_shuffle_split({}, 0.5, 3).train.empty());
  EXPECT_THROW(group_shuffle_split(groups, 1.1, 3), std::invalid_argument);
  EXPECT_THROW(group_shuffle_split(groups, -0.1, 3), std::invalid_argument);
}

}  // namespace
}  // namespace cpprun::data

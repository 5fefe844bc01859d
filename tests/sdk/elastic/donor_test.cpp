// The rule by which a round chooses the rank whose state all take over.
#include "cpprun/elastic/donor.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace cpprun::detail {
namespace {

TEST(Donor, IsTheLowestRankWithMostSteps) {
  const Donor donor = choose_donor({{9, false, "a"}, {10, false, "a"}, {10, false, "a"}, {0}});
  EXPECT_EQ(donor.rank, 1);
  EXPECT_EQ(donor.completed, 10);
  EXPECT_EQ(donor.lost_steps, 0);
  EXPECT_TRUE(donor.is_needed);
}

TEST(Donor, IsNeverTorn) {
  const Donor donor = choose_donor({{11, true, ""}, {10, true, ""}, {10, false, ""}});
  EXPECT_EQ(donor.rank, 2);
  EXPECT_EQ(donor.lost_steps, 1);
  EXPECT_TRUE(donor.is_needed);
}

TEST(Donor, IsNotNeededWhereAllAreEqual) {
  EXPECT_FALSE(choose_donor({{0}, {0}, {0}}).is_needed);
  EXPECT_FALSE(choose_donor({{7, false, "1 0"}}).is_needed);
}

TEST(Donor, DoesNotExistWhereAllAreTorn) {
  EXPECT_THROW(choose_donor({{7, true, ""}, {8, true, ""}}), std::runtime_error);
}

}  // namespace
}  // namespace cpprun::detail

// Which host reaches which.
#include "launcher/ssh/plan/tree.hpp"

#include <gtest/gtest.h>

#include "common/limits/ssh.hpp"

namespace cpprun::ssh {
namespace {

using Parents = std::vector<std::optional<size_t>>;

Parents parents_of(const std::vector<std::string>& names, size_t fanout) {
  LaunchPlan plan;
  plan.host_name = "login";
  plan.fanout = fanout;
  for (const std::string& name : names) plan.hosts.push_back(Host{name, {}});
  return tree_parents(plan);
}

TEST(Tree, IsFilledLevelByLevel) {
  EXPECT_EQ(parents_of({"a", "b", "c", "d", "e", "f", "g"}, 2), (Parents{{}, {}, 0, 0, 1, 1, 2}));
  EXPECT_EQ(parents_of({"a", "b", "c"}, 1), (Parents{{}, 0, 1}));
}

TEST(Tree, IsOffByDefault) { EXPECT_EQ(parents_of({"a", "b", "c"}, 0), Parents(3)); }

TEST(Tree, ThisMachineIsNotInIt) {
  EXPECT_EQ(parents_of({"login", "a", "b", "c"}, 1), (Parents{{}, {}, 1, 2}));
}

TEST(Tree, TwoLevelsHoldTheMostHosts) {
  const std::vector<std::string> names(limits::kSshHosts, "a");
  const Parents parents = parents_of(names, limits::kSshTreeFanout);
  for (const std::optional<size_t>& parent : parents) {
    EXPECT_TRUE(!parent || !parents[*parent]);
  }
}

}  // namespace
}  // namespace cpprun::ssh

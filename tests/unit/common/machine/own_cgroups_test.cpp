#include "common/machine/own_cgroups.hpp"

#include <gtest/gtest.h>

namespace cpprun {
namespace {

using Folders = std::vector<std::string>;

constexpr const char* kBothVersions =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "34 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n";
constexpr const char* kPart = "41 31 0:38 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

std::string unified_path(std::string_view cgroup, std::string_view mountinfo) {
  return parse_own_cgroups(cgroup, mountinfo).unified.path;
}

TEST(OwnCgroups, AreBelowTheMountsOfTheirTrees) {
  const OwnCgroups own = parse_own_cgroups("4:memory:/a\n0::/b/c\n", kBothVersions);
  EXPECT_EQ(own.unified.path, "/sys/fs/cgroup/unified/b/c");
  EXPECT_EQ(own.unified.mount_point, "/sys/fs/cgroup/unified");
  EXPECT_EQ(own.memory.path, "/sys/fs/cgroup/memory/a");
  EXPECT_EQ(own.memory.mount_point, "/sys/fs/cgroup/memory");
  EXPECT_EQ(unified_path("0::/\n", kBothVersions), "/sys/fs/cgroup/unified");
}

TEST(OwnCgroups, AreEmptyWhereNoMountShowsThem) {
  EXPECT_EQ(unified_path("4:memory:/a\n", kBothVersions), "");
  EXPECT_EQ(unified_path("0::/../x\n", kBothVersions), "");
  EXPECT_EQ(unified_path("0::/b\n", ""), "");
  EXPECT_EQ(unified_path("0::/elsewhere\n", kPart), "");
  EXPECT_EQ(unified_path("0::/docker/10\n", kPart), "");
}

TEST(OwnCgroups, LeaveOutWhatAMountDoesNotShow) {
  EXPECT_EQ(unified_path("0::/docker/1/sub\n", kPart), "/sys/fs/cgroup/sub");
  EXPECT_EQ(unified_path("0::/docker/1\n", kPart), "/sys/fs/cgroup");
}

TEST(OwnCgroups, AncestorsEndAtTheMountPoint) {
  const CgroupFolder folder{"/sys/fs/cgroup/a/b", "/sys/fs/cgroup"};
  EXPECT_EQ(folder.with_ancestors(),
            (Folders{"/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"}));
  const CgroupFolder top{"/sys/fs/cgroup", "/sys/fs/cgroup"};
  EXPECT_EQ(top.with_ancestors(), Folders{"/sys/fs/cgroup"});
  EXPECT_EQ(CgroupFolder().with_ancestors(), Folders{});
}

}  // namespace
}  // namespace cpprun

// The cgroups of this process, and where their trees are mounted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

// A cgroup as a folder; both are empty where the tree is not mounted or does not show the cgroup.
struct CgroupFolder {
  std::string path;
  std::string mount_point;  // `path` itself or a folder above it

  // The folders of this cgroup and its ancestors, innermost first: limits of all of them count.
  std::vector<std::string> with_ancestors() const;
};

struct OwnCgroups {
  CgroupFolder unified;  // of version 2
  CgroupFolder memory;   // of version 1's memory controller
};

// From the texts of /proc/self/cgroup and /proc/self/mountinfo.
OwnCgroups parse_own_cgroups(std::string_view cgroup, std::string_view mountinfo);

// Those of this process when the first call came, which reads the two files; later calls return the
// same, since a start would read them four times. Any thread.
const OwnCgroups& own_cgroups();

}  // namespace cpprun

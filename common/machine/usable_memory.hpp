// The memory that this process may use, and the folder of its cgroup, from which that follows.
// Reads /proc and /sys; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

// Folder of this process's cgroup, from the texts of /proc/self/cgroup and /proc/self/mountinfo.
// `controller` empty: the v2 tree; otherwise the v1 tree of that controller. "" where there is
// none.
std::string own_cgroup_folder(std::string_view controller, std::string_view cgroup,
                              std::string_view mountinfo);

// A folder of a cgroup and those of its ancestors, innermost first, down to the one below "/":
// limits of all of them count. None for "".
std::vector<std::string> with_ancestors(std::string folder);

// Bytes of memory of this machine, or of the tightest cgroup limit if that is less.
uint64_t usable_memory();

}  // namespace cpprun

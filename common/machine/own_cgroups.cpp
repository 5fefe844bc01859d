#include "common/machine/own_cgroups.hpp"

#include <optional>

#include "common/machine/files.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr std::string_view kUnified = "";  // in the place of a controller

bool lists(std::string_view commas, std::string_view word) {
  for (const std::string& item : text::split(commas, ',')) {
    if (item == word) return true;
  }
  return false;
}

// The path after "hierarchy:controllers:" of the wanted tree.
std::optional<std::string> path_in_tree(std::string_view controller, std::string_view cgroup) {
  for (const std::string& line : text::split(cgroup, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_wanted =
        controller == kUnified ? line.starts_with("0::") : lists(controllers, controller);
    if (is_wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string root;   // the part of the tree that is mounted
  std::string point;  // the mount point
};

std::optional<Mount> find_mount(std::string_view controller, std::string_view mountinfo) {
  for (const std::string& line : text::split(mountinfo, '\n')) {
    if (line.find(" cgroup") == std::string::npos) continue;
    const std::vector<std::string> words = text::split(line, ' ');
    size_t dash = 6;  // optional fields end with "-"
    while (dash < words.size() && words[dash] != "-") ++dash;
    if (dash + 3 >= words.size()) continue;
    const std::string& type = words[dash + 1];
    const bool is_wanted = controller == kUnified
                               ? type == "cgroup2"
                               : type == "cgroup" && lists(words[dash + 3], controller);
    if (is_wanted) return Mount{words[3], words[4]};
  }
  return std::nullopt;
}

CgroupFolder folder_of(std::string_view controller, std::string_view cgroup,
                       std::string_view mountinfo) {
  const std::optional<std::string> path = path_in_tree(controller, cgroup);
  const std::optional<Mount> mount = path ? find_mount(controller, mountinfo) : std::nullopt;
  if (!mount) return {};
  std::string below = *path == "/" ? "" : *path;
  if (mount->root != "/") {
    if (!below.starts_with(mount->root)) return {};  // this cgroup is not below the mounted part
    below = below.substr(mount->root.size());
    if (!below.empty() && below.front() != '/') return {};  // a sibling: "/job10" is not in "/job1"
  }
  if (below.find("..") != std::string::npos) return {};  // outside of this cgroup namespace
  return {mount->point + below, mount->point};
}

}  // namespace

std::vector<std::string> CgroupFolder::with_ancestors() const {
  std::vector<std::string> folders;
  for (std::string folder = path; folder.size() > mount_point.size();) {
    folders.push_back(folder);
    folder.resize(folder.find_last_of('/'));
  }
  if (!mount_point.empty()) folders.push_back(mount_point);
  return folders;
}

OwnCgroups parse_own_cgroups(std::string_view cgroup, std::string_view mountinfo) {
  return {folder_of(kUnified, cgroup, mountinfo), folder_of("memory", cgroup, mountinfo)};
}

const OwnCgroups& own_cgroups() {
  static const OwnCgroups cgroups = parse_own_cgroups(
      read_file("/proc/self/cgroup").value_or(""), read_file("/proc/self/mountinfo").value_or(""));
  return cgroups;
}

}  // namespace cpprun

#include "common/machine/usable_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "common/machine/files.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

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
        controller.empty() ? line.starts_with("0::") : lists(controllers, controller);
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
    const std::vector<std::string> words = text::split(line, ' ');
    size_t dash = 6;  // optional fields end with "-"
    while (dash < words.size() && words[dash] != "-") ++dash;
    if (dash + 3 >= words.size()) continue;
    const std::string& type = words[dash + 1];
    const bool is_wanted = controller.empty()
                               ? type == "cgroup2"
                               : type == "cgroup" && lists(words[dash + 3], controller);
    if (is_wanted) return Mount{words[3], words[4]};
  }
  return std::nullopt;
}

uint64_t tightest_limit(const std::string& folder, const char* file) {
  uint64_t tightest = UINT64_MAX;
  for (const std::string& each : with_ancestors(folder)) {
    std::string limit = read_file(each + "/" + file).value_or("");  // "max", or bytes
    if (!limit.empty() && limit.back() == '\n') limit.pop_back();
    const std::optional<int64_t> bytes = text::parse_int(limit);
    if (bytes && *bytes > 0) tightest = std::min(tightest, static_cast<uint64_t>(*bytes));
  }
  return tightest;
}

}  // namespace

std::string own_cgroup_folder(std::string_view controller, std::string_view cgroup,
                              std::string_view mountinfo) {
  const std::optional<std::string> path = path_in_tree(controller, cgroup);
  const std::optional<Mount> mount = find_mount(controller, mountinfo);
  if (!path || !mount) return "";
  std::string below = *path == "/" ? "" : *path;
  if (mount->root != "/") {
    if (!below.starts_with(mount->root)) return "";  // this cgroup is not below the mounted part
    below = below.substr(mount->root.size());
  }
  if (below.find("..") != std::string::npos) return "";  // outside of this cgroup namespace
  return mount->point + below;
}

std::vector<std::string> with_ancestors(std::string folder) {
  std::vector<std::string> folders;
  while (!folder.empty()) {
    folders.push_back(folder);
    const size_t slash = folder.find_last_of('/');
    folder.resize(slash == std::string::npos ? 0 : slash);
  }
  return folders;
}

uint64_t usable_memory() {
  const uint64_t machine =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::getpagesize());
  const std::string cgroup = read_file("/proc/self/cgroup").value_or("");
  const std::string mountinfo = read_file("/proc/self/mountinfo").value_or("");
  return std::min(
      {machine, tightest_limit(own_cgroup_folder("", cgroup, mountinfo), "memory.max"),
       tightest_limit(own_cgroup_folder("memory", cgroup, mountinfo), "memory.limit_in_bytes")});
}

}  // namespace cpprun

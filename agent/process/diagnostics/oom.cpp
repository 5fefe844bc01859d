#include "agent/process/diagnostics/oom.hpp"

#include <unistd.h>

#include "agent/process/cleanup/cgroup.hpp"
#include "agent/process/proc_files.hpp"
#include "common/text.hpp"

namespace cpprun {

OomCounter::OomCounter() {
  const std::string cgroup = read_small_file("/proc/self/cgroup");
  const std::string mounts = read_small_file("/proc/self/mountinfo");
  const std::string v2 = own_cgroup_folder("", cgroup, mounts) + "/memory.events";
  const std::string v1 = own_cgroup_folder("memory", cgroup, mounts) + "/memory.oom_control";
  for (const std::string& file : {v2, v1, std::string("/proc/vmstat")}) {
    file_ = file;
    if (read() >= 0) break;
  }
}

int64_t OomCounter::read() const {
  for (const std::string& line : text::split(read_small_file(file_), '\n')) {
    if (line.starts_with("oom_kill ")) return text::parse_int(line.substr(9)).value_or(-1);
  }
  return -1;
}

void OomCounter::begin_round() { seen_ = read(); }

bool OomCounter::take_kill() {
  if (seen_ < 0 || read() <= seen_) return false;
  ++seen_;
  return true;
}

}  // namespace cpprun

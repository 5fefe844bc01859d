// Cgroup: a cgroup v2 folder of the agent's own, where it can make one. cgroup.kill is the surest
// way to end everything that workers started: no process leaves a cgroup by setsid, double fork or
// a changed environment.
//
// It sets no limits and enables no controller. Thread: the loop's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

// Where the agent with this token would make its cgroup; "" where it cannot. Makes nothing.
std::string cgroup_folder(const std::string& token);

class Cgroup {
 public:
  // Unset: the kernel, its configuration or missing rights forbid it; OrphanSweep then works
  // without.
  static std::optional<Cgroup> make(const std::string& token);
  Cgroup(Cgroup&&) = default;
  Cgroup& operator=(Cgroup&&) = default;
  ~Cgroup();  // removes the folder and those below it, if no process is left in them

  int folder() const { return folder_.get(); }
  const std::string& path() const { return path_; }
  bool kill();  // SIGKILL to all its processes; false: the kernel has no cgroup.kill

 private:
  Cgroup(std::string path, UniqueFd folder) : path_(std::move(path)), folder_(std::move(folder)) {}

  std::string path_;
  UniqueFd folder_;
};

// Removes a cgroup folder and those below it; false: a process is left in one. Allocates nothing,
// for the reaper process.
bool remove_cgroup(int parent, const char* name, int depth);

}  // namespace cpprun

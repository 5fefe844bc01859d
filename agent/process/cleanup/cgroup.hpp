// Cgroup: a folder of our own in the cgroup v2 tree, where one can be made. It is the surest way to
// end everything that workers started: no process leaves it by setsid, double fork or a changed
// environment.
//
// No limits are set and no controller is switched on. Thread: the loop's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

// Folder of the cgroup that this process is in, from the texts of /proc/self/cgroup and
// /proc/self/mountinfo. `controller` empty: the v2 tree; otherwise the v1 tree of that controller.
// "" where there is none.
std::string own_cgroup_folder(std::string_view controller, std::string_view cgroup,
                              std::string_view mountinfo);

// Where the agent with this token makes its cgroup; "" where it cannot. Asks the kernel, makes
// nothing.
std::string cgroup_folder(const std::string& token);

class Cgroup {
 public:
  // Nothing where the kernel, its set-up or our rights do not allow it: the sweep does without.
  static std::optional<Cgroup> make(const std::string& token);
  Cgroup(Cgroup&&) = default;
  Cgroup& operator=(Cgroup&&) = default;
  ~Cgroup();  // removes the folder (and those below it) if nothing lives in it

  int folder() const { return folder_.get(); }
  const std::string& path() const { return path_; }
  bool kill();  // SIGKILL to all that is in it; false where the kernel has no cgroup.kill

 private:
  Cgroup(std::string path, UniqueFd folder) : path_(std::move(path)), folder_(std::move(folder)) {}

  std::string path_;
  UniqueFd folder_;
};

// Removes a cgroup folder and those below it; false if something still lives there. Allocates
// nothing.
bool remove_cgroup(int parent, const char* name, int depth);

}  // namespace cpprun

#include "agent/process/cleanup/cgroup.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <vector>

#include "agent/process/proc_files.hpp"
#include "common/machine/own_cgroups.hpp"
#include "common/text.hpp"
#include "common/thread/loop_mark.hpp"

namespace cpprun {
namespace {

constexpr int kCgroupDepthMax = 8;   // of nested jobs; deeper folders are left to their owners
constexpr int kRemoveTries = 1'000;  // 0.1 ms apart; usually the first one succeeds
constexpr size_t kTokenPrefix = 16;  // enough of the token to be unique on a machine

}  // namespace

std::string cgroup_folder(const std::string& token) {
  const std::string& own = own_cgroups().unified.path;
  if (own.empty()) return "";
  // clone3() into a sibling cgroup requires write access to the common ancestor's cgroup.procs.
  if (::access((own + "/cgroup.procs").c_str(), W_OK) != 0 || ::access(own.c_str(), W_OK) != 0)
    return "";
  // The root cgroup has no such file.
  const std::string type = read_small_file(own + "/cgroup.type");
  if (!type.empty() && type != "domain\n") return "";
  return own + "/cpprun-" + token.substr(0, kTokenPrefix);
}

std::optional<Cgroup> Cgroup::make(const std::string& token) {
  const std::string path = cgroup_folder(token);
  if (path.empty()) return std::nullopt;
  if (::mkdir(path.c_str(), 0755) < 0 && errno != EEXIST) return std::nullopt;
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Before Linux 5.14 there is no cgroup.kill; OrphanSweep is surer than a loop over cgroup.procs.
  if (!folder.is_open() || ::faccessat(folder.get(), "cgroup.kill", W_OK, 0) != 0) {
    ::rmdir(path.c_str());
    return std::nullopt;
  }
  return Cgroup(path, std::move(folder));
}

Cgroup::~Cgroup() {
  if (!folder_.is_open()) return;
  // A reaped process still counts as a member until the kernel has finished its exit.
  const timespec pause{0, 100'000};
  for (int i = 0; i < kRemoveTries && !remove_cgroup(AT_FDCWD, path_.c_str(), kCgroupDepthMax);
       ++i) {
    ::nanosleep(&pause, nullptr);
  }
}

bool Cgroup::kill() {
  const Unblocking cgroupfs("the kernel's own file system");
  UniqueFd file(::openat(folder_.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  return file.is_open() && ::write(file.get(), "1", 1) == 1;
}

bool remove_cgroup(int parent, const char* name, int depth) {
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (depth == 0) return false;
  UniqueFd folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return errno == ENOENT;
  for_each_entry(folder.get(), [&](const char* entry, bool is_folder) {
    if (is_folder && entry[0] != '.') remove_cgroup(folder.get(), entry, depth - 1);
  });
  return ::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

}  // namespace cpprun

#include "agent/process/cleanup/folder_removal.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "agent/process/cleanup/helper_start.hpp"
#include "agent/process/proc_files.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/machine/reap.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/thread/blocked_signals.hpp"

namespace cpprun {
namespace {

constexpr int64_t kXfs = 0x58465342, kZfs = 0x2fc12fc1;  // linux/magic.h lacks them
constexpr std::array<int64_t, 8> kLocal{
    EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
    RAMFS_MAGIC,      F2FS_SUPER_MAGIC,  kXfs,        kZfs};

// NFS and FUSE rename a removed file that is still open to such a name, and remove it at its last
// close. Removing the renamed file only makes another one.
bool is_kept_open(std::string_view name) {
  return name.starts_with(".fuse_hidden") || name.starts_with(".nfs");
}

// Most of the folders are empty and go with one system call. False: something is left; errno has
// the reason.
bool remove_at(int parent, const char* name, int depth, Instant until) {
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0) return true;
  if (errno != ENOTEMPTY && errno != EEXIST) return false;
  if (depth == 0) return errno = ELOOP, false;
  UniqueFd folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.is_open()) return false;
  bool has_removed = true;
  int error = 0;
  while (has_removed) {  // again: getdents may miss entries while others are removed
    has_removed = false;
    ::lseek(folder.get(), 0, SEEK_SET);
    for_each_entry(folder.get(), [&](const char* entry, bool is_folder) {
      const std::string_view called = entry;
      if (called == "." || called == ".." || is_kept_open(called) || boot_now() >= until) return;
      bool is_gone = !is_folder && ::unlinkat(folder.get(), entry, 0) == 0;
      // Some file systems report no entry types.
      const bool may_be_folder = is_folder || (!is_gone && errno == EISDIR);
      if (may_be_folder) is_gone = remove_at(folder.get(), entry, depth - 1, until);
      if (!is_gone) error = errno;
      has_removed = has_removed || is_gone;
    });
    if (::unlinkat(parent, name, AT_REMOVEDIR) == 0) return true;
  }
  errno = boot_now() >= until ? ETIMEDOUT : error != 0 ? error : ENOTEMPTY;
  return false;
}

// The child after fork(). It blocks all signals, because the parent's handlers must not run in it.
[[noreturn]] void run_and_write(const std::function<std::string()>& work, int to) {
  const BlockedSignals blocked;
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; null >= 0 && fd < 3; ++fd) ::dup2(null, fd);
  ::dup2(to, 3);
  ::syscall(SYS_close_range, 4U, ~0U, 0);
  const std::string text = work();
  for (size_t at = 0; at < text.size();) {
    const ssize_t done = ::write(3, text.data() + at, text.size() - at);
    if (done <= 0 && errno != EINTR) break;
    at += static_cast<size_t>(std::max<ssize_t>(0, done));
  }
  ::_exit(0);
}

}  // namespace

Status remove_folder(const std::string& path) {
  const Instant until = boot_now() + limits::kFolderRemovalTimeout;
  if (remove_at(AT_FDCWD, path.c_str(), limits::kFolderDepth, until) || errno == ENOENT) return {};
  return system_error(path + " cannot be removed", errno);
}

bool is_local_folder(const std::string& path) {
  struct statfs found {};
  if (::statfs(path.c_str(), &found) < 0) return false;
  const auto kind = static_cast<int64_t>(static_cast<uint32_t>(found.f_type));
  return std::ranges::find(kLocal, kind) != kLocal.end();
}

Result<std::string> run_apart(const std::function<std::string()>& work, Duration most) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return system_error("no pipe", errno);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const int pid = ::fork();
  if (pid == 0) run_and_write(work, to.get());
  if (pid < 0) return system_error("no process can be started", errno);
  register_helper(pid);
  to.reset();
  std::string text;
  if (read_until(from.get(), boot_now() + most, SIZE_MAX, text)) {
    reap(pid);
    unregister_helper(pid);
    return text;
  }
  ::kill(pid, SIGKILL);  // the kernel may never end it, so the agent does not wait
  return Error{ErrorKind::Timeout, "its file system does not answer (process " +
                                       std::to_string(pid) + " waits for it)"};
}

}  // namespace cpprun

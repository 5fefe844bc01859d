#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "launcher/doctor/probe.hpp"

namespace cpprun::doctor {
namespace {

using Clock = std::chrono::steady_clock;

std::string failure(const std::string& path, const char* what) {
  return path + ": " + what + ": " + std::strerror(errno);
}

// The steps of a snapshot with the new file `name`; returns the failure, "" if all succeed.
std::string try_steps(const std::string& path, int file, const std::string& name,
                      const std::string& renamed, Duration& fsync_took) {
  const std::vector<char> bytes(1 << 20, 'x');
  errno = ENOSPC;  // for a short write, which sets no errno
  if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return failure(path, "a file of 1 MiB can't be written");
  const Clock::time_point start = Clock::now();
  if (::fsync(file) != 0) return failure(path, "fsync of a file fails");
  fsync_took = Clock::now() - start;
  if (::rename(name.c_str(), renamed.c_str()) != 0) return failure(path, "a file can't be renamed");
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.is_open() && ::fsync(folder.get()) == 0) return "";
  return failure(path, "fsync of the folder fails");
}

}  // namespace

FolderFacts probe_folder(const std::string& path) {
  FolderFacts found;
  found.path = path;
  found.disk_space = disk_space_of(path);
  std::string name = path + "/.cpprun-doctor-XXXXXX";
  UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.is_open()) {
    found.error = failure(path, "a file can't be made");
    return found;
  }
  const std::string renamed = name + ".renamed";
  found.error = try_steps(path, file.get(), name, renamed, found.fsync_took);
  file.reset();
  ::unlink(name.c_str());
  ::unlink(renamed.c_str());
  return found;
}

}  // namespace cpprun::doctor

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "launcher/doctor/disk_space.hpp"
#include "launcher/doctor/probe.hpp"

namespace cpprun::doctor {
namespace {

using Clock = std::chrono::steady_clock;

// Owns the trial file and the result.
class Trial {
 public:
  explicit Trial(FolderFacts& facts)
      : facts_(facts), name_(facts.path + "/.cpprun-doctor-XXXXXX"), renamed_(name_) {}
  ~Trial() {
    if (file_ >= 0) ::close(file_);
    if (folder_ >= 0) ::close(folder_);
    if (!is_made_) return;
    ::unlink(name_.c_str());
    ::unlink(renamed_.c_str());
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void run() {
    file_ = ::mkostemp(name_.data(), O_CLOEXEC);
    if (file_ < 0) return fail("a file can't be made");
    is_made_ = true;
    renamed_ = name_ + ".renamed";
    const std::vector<char> bytes(1 << 20, 'x');
    errno = ENOSPC;  // for a short write, which sets no errno
    if (::write(file_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      return fail("a file of 1 MiB can't be written");
    const Clock::time_point start = Clock::now();
    if (::fsync(file_) != 0) return fail("fsync of a file fails");
    facts_.fsync_took = Clock::now() - start;
    if (::rename(name_.c_str(), renamed_.c_str()) != 0) return fail("a file can't be renamed");
    folder_ = ::open(facts_.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0 || ::fsync(folder_) != 0) fail("fsync of the folder fails");
  }

 private:
  void fail(const char* what) {
    facts_.error = facts_.path + ": " + what + ": " + std::strerror(errno);
  }

  FolderFacts& facts_;
  std::string name_;
  std::string renamed_;
  int file_ = -1;
  int folder_ = -1;
  bool is_made_ = false;
};

}  // namespace

FolderFacts probe_folder(const std::string& path) {
  FolderFacts found;
  found.path = path;
  found.disk_space = disk_space_of(path);
  Trial(found).run();
  return found;
}

}  // namespace cpprun::doctor

#include "launcher/cpprun/slurm_secret.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "common/limits/tls.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/files.hpp"
#include "common/machine/identity.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr const char* kWayOut =
    " (--secret-file=FILE names another file, --slurm-secret=never goes without a secret)";

// Whether this call has made the file; false: it is there already. A link gives the whole content
// its final name, so that no other node reads a part of it.
Result<bool> make_file(const std::string& path) {
  const std::string draft = path + "." + random_hex();
  const UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) return system_error("can't make the job's secret " + path, errno);
  Status written = write_all(file.get(), random_hex(2) + "\n");
  if (written && ::fsync(file.get()) != 0) written = system_error("fsync", errno);
  const int linked = written ? ::link(draft.c_str(), path.c_str()) : -1;
  const int why = errno;
  ::unlink(draft.c_str());
  if (!written) return written.error();
  if (linked != 0 && why != EEXIST) return system_error("can't make the job's secret " + path, why);
  return linked == 0;
}

// A file of another user may be a trap: the submit directory may be open to others.
bool is_own_file(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid();
}

// Reads the folder anew: an NFS client remembers for up to a minute that a file was missing.
void refresh_folder_of(const std::string& path) {
  DIR* folder = ::opendir(path.substr(0, path.find_last_of('/')).c_str());
  if (folder == nullptr) return;
  while (::readdir(folder) != nullptr) {
  }
  ::closedir(folder);
}

bool appears_within(const std::string& path, Duration wait) {
  const Instant until = boot_now() + wait;
  while (!is_own_file(path)) {
    if (boot_now() >= until) return false;
    std::this_thread::sleep_for(limits::kSecretFilePoll);
    refresh_folder_of(path);
  }
  return true;
}

}  // namespace

Result<SlurmSecret> SlurmSecret::obtain(const std::string& path, bool is_first_node,
                                        Duration wait) {
  SlurmSecret made;
  if (path.empty()) return made;
  if (is_first_node) {
    const Result<bool> is_made = make_file(path);
    if (!is_made) return Error{is_made.error().kind, is_made.error().text + kWayOut};
    if (*is_made) made.own_path_ = path;
  }
  if (!appears_within(path, wait)) {
    return Error{ErrorKind::Timeout, "the first node of the step has not made the job's secret " +
                                         path + " within " + text::seconds(wait) +
                                         ": is the folder shared by all nodes?" + kWayOut};
  }
  Result<std::shared_ptr<const JobSecret>> secret = JobSecret::read(path);
  if (!secret) return secret.error();
  if (Status ok = (*secret)->check("the secret file " + path); !ok) return ok.error();
  made.secret_ = std::move(*secret);
  return made;
}

SlurmSecret::~SlurmSecret() {
  if (!own_path_.empty()) ::unlink(own_path_.c_str());
}

SlurmSecret::SlurmSecret(SlurmSecret&& other) noexcept
    : own_path_(std::exchange(other.own_path_, "")), secret_(std::move(other.secret_)) {}

SlurmSecret& SlurmSecret::operator=(SlurmSecret&& other) noexcept {
  std::swap(own_path_, other.own_path_);
  std::swap(secret_, other.secret_);
  return *this;
}

}  // namespace cpprun

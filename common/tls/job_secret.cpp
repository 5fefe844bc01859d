#include "common/tls/job_secret.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/limits/tls.hpp"
#include "common/machine/unique_fd.hpp"

namespace cpprun {
namespace {

constexpr const char* kRemedy = "; make one with: (umask 077; openssl rand -hex 32 > FILE)";

Error bad_secret(const std::string& text) { return Error{ErrorKind::BadValue, text}; }

// As ssh: only files of our own are ours to protect.
Status check_mode(const std::string& path, const struct stat& info) {
  const bool is_open_to_others = (info.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  if (info.st_uid != ::geteuid() || !is_open_to_others) return {};
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777));
  return bad_secret("the secret file " + path + " is open to other users (mode " + mode +
                    "), so it is no secret; run: chmod 600 " + path);
}

}  // namespace

Result<std::shared_ptr<JobSecret>> JobSecret::reserve(size_t size) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t capacity = (size / page + 1) * page;
  void* memory =
      ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error("no memory for the job's secret", errno);
  // Each protects a little more; an older kernel or a small RLIMIT_MEMLOCK is no reason to stop.
  ::mlock(memory, capacity);
  ::madvise(memory, capacity, MADV_DONTDUMP);
  ::madvise(memory, capacity, MADV_WIPEONFORK);
  return std::shared_ptr<JobSecret>(new JobSecret(static_cast<uint8_t*>(memory), capacity));
}

JobSecret::~JobSecret() {
  ::explicit_bzero(data_, capacity_);
  ::munmap(data_, capacity_);
}

Result<std::shared_ptr<const JobSecret>> JobSecret::copy_of(std::string_view text) {
  Result<std::shared_ptr<JobSecret>> made = reserve(text.size());
  if (!made) return made.error();
  ::memcpy((*made)->data_, text.data(), text.size());
  (*made)->size_ = text.size();
  return std::shared_ptr<const JobSecret>(std::move(*made));
}

Result<std::shared_ptr<const JobSecret>> JobSecret::read(const std::string& path) {
  // O_NONBLOCK: a pipe without a writer must not stop the start; it is refused below.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.is_open()) {
    return bad_secret("the secret file " + path + " can't be read: " + ::strerror(errno));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return bad_secret("the secret file " + path + " is no regular file");
  }
  if (Status ok = check_mode(path, info); !ok) return ok.error();
  // One byte more than is allowed, and a newline, show that it is too long.
  constexpr size_t kMost = limits::kSecretBytesMax + 3;
  Result<std::shared_ptr<JobSecret>> made = reserve(kMost);
  if (!made) return made.error();
  JobSecret& secret = **made;
  while (secret.size_ < kMost) {
    const ssize_t got = ::read(file.get(), secret.data_ + secret.size_, kMost - secret.size_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return bad_secret("the secret file " + path + ": " + ::strerror(errno));
    if (got == 0) break;
    secret.size_ += static_cast<size_t>(got);
  }
  if (secret.size_ > 0 && secret.data_[secret.size_ - 1] == '\n') --secret.size_;
  if (secret.size_ > 0 && secret.data_[secret.size_ - 1] == '\r') --secret.size_;
  return std::shared_ptr<const JobSecret>(std::move(*made));
}

Status JobSecret::check(const std::string& what) const {
  if (size_ < limits::kSecretBytesMin) {
    return bad_secret(what + " has " + std::to_string(size_) +
                      " bytes; a job's secret has at least " +
                      std::to_string(limits::kSecretBytesMin) + kRemedy);
  }
  if (size_ > limits::kSecretBytesMax) {
    return bad_secret(what + " is longer than " + std::to_string(limits::kSecretBytesMax) +
                      " bytes, so it is hardly a secret" + kRemedy);
  }
  return {};
}

Result<std::shared_ptr<const JobSecret>> take_secret_variable() {
  char* value = ::getenv(kSecretVariable);
  if (value == nullptr || *value == '\0') return std::shared_ptr<const JobSecret>();
  const size_t size = ::strlen(value);
  Result<std::shared_ptr<const JobSecret>> made = JobSecret::copy_of({value, size});
  ::explicit_bzero(value, size);
  ::unsetenv(kSecretVariable);
  return made;
}

Result<std::shared_ptr<const JobSecret>> choose_secret(
    const std::string& file, const std::string& variable_file,
    const std::shared_ptr<const JobSecret>& variable, const ReadSecret& read) {
  const std::string& path = file.empty() ? variable_file : file;
  if (path.empty() && !variable) return variable;
  const std::string what = path.empty() ? kSecretVariable : "the secret file " + path;
  Result<std::shared_ptr<const JobSecret>> made =
      path.empty() ? Result<std::shared_ptr<const JobSecret>>(variable) : read(path);
  if (!made) return made.error();
  if (Status ok = (*made)->check(what); !ok) return ok.error();
  return made;
}

}  // namespace cpprun

#include "snapshot_files/folders/real_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/folders/file_errors.hpp"

namespace cpprun::snapshot_files {
namespace {

constexpr size_t kDirectFrom = 1 << 20;  // smaller writes gain nothing by bypassing the cache
constexpr size_t kBounceBytes = 4 << 20;
// At the end of each write the disk wakes the writing thread, which interrupts the training on its
// core: with tensors of 16 MiB that is 2.4 times less often than with writes of 4 MiB.
constexpr size_t kDirectMost = 64 << 20;
constexpr size_t kSystemMost = 1 << 30;  // Linux moves at most 2 GiB at once

bool is_aligned(const std::byte* address) {
  return reinterpret_cast<uintptr_t>(address) % archive::kBlock == 0;
}

}  // namespace

RealFile::~RealFile() {
  if (direct_fd_ >= 0) ::close(direct_fd_);
  ::close(fd_);
}

Result<uint64_t> RealFile::size() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return file_error("look at", path_, errno);
  return static_cast<uint64_t>(info.st_size);
}

Status RealFile::read_at(uint64_t offset, archive::Bytes into) const {
  while (!into.empty()) {
    const ssize_t got =
        ::pread(fd_, into.data(), std::min(into.size(), kSystemMost), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read", path_, errno);
    if (got == 0) {
      return Error{ErrorKind::Protocol,
                   path_ + " was cut short: it ends at byte " + std::to_string(offset)};
    }
    offset += static_cast<uint64_t>(got);
    into = into.subspan(static_cast<size_t>(got));
  }
  return {};
}

Status RealFile::write_at(uint64_t offset, archive::ConstBytes bytes) {
  if (bytes.size() >= kDirectFrom && offset % archive::kBlock == 0 && opens_directly()) {
    const size_t blocks = bytes.size() / archive::kBlock * archive::kBlock;
    const size_t done = write_directly(offset, bytes.first(blocks));
    offset += done;
    bytes = bytes.subspan(done);
  }
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd_, bytes.data(), std::min(bytes.size(), kSystemMost),
                                 static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return file_error("write", path_, errno);
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

bool RealFile::opens_directly() {
  if (direct_fd_ >= 0) return true;
  if (is_direct_refused_) return false;
  direct_fd_ = ::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW);
  is_direct_refused_ = direct_fd_ < 0;
  return !is_direct_refused_;
}

// On failure (unsuitable memory or offset, a full disk) it stops early; the ordinary write
// continues there and reports the error.
size_t RealFile::write_directly(uint64_t offset, archive::ConstBytes blocks) {
  if (!is_aligned(blocks.data()) && bounce_ == nullptr) {
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(archive::kBlock, kBounceBytes));
    if (memory == nullptr) return 0;
    bounce_ = {memory, &std::free};
  }
  size_t done = 0;
  while (done < blocks.size()) {
    const std::byte* from = blocks.data() + done;
    const size_t most = is_aligned(from) ? kDirectMost : kBounceBytes;
    const size_t bytes = std::min(blocks.size() - done, most);
    if (!is_aligned(from)) from = static_cast<std::byte*>(std::memcpy(bounce_.get(), from, bytes));
    const ssize_t put = ::pwrite(direct_fd_, from, bytes, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) is_direct_refused_ = true;
    if (put <= 0 || static_cast<size_t>(put) % archive::kBlock != 0) {
      return done + static_cast<size_t>(std::max<ssize_t>(put, 0));
    }
    done += static_cast<size_t>(put);
  }
  return done;
}

Status RealFile::reserve(uint64_t bytes) {
  if (::fallocate(fd_, 0, 0, static_cast<off_t>(bytes)) == 0) return {};
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) {
    return file_error("reserve " + std::to_string(bytes) + " bytes for", path_, errno);
  }
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) == 0) return {};
  return file_error("reserve " + std::to_string(bytes) + " bytes for", path_, errno);
}

Status RealFile::sync() {
  if (::fdatasync(fd_) == 0) return {};
  return file_error("bring to the disk", path_, errno);
}

}  // namespace cpprun::snapshot_files

// The real disk.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "common/limits/snapshots.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/folders/direct_writer.hpp"
#include "snapshot_files/folders/file_layer.hpp"

namespace cpprun::snapshot_files {
namespace {

const char* cure(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT: return "; free some there, keep fewer snapshots, or name another folder";
    case EROFS: return "; name a folder that can be written";
    case EACCES:
    case EPERM: return "; give this user the right, or name another folder";
    case ENOENT: return "; check the path";
    case EIO: return "; the disk has failed, so look at the kernel's log";
    case ESTALE:
    case ETIMEDOUT: return "; the file server is gone or has restarted, so mount it again";
    case EMFILE:
    case ENFILE: return "; raise the limit of open files (ulimit -n)";
    case ELOOP: return "; it is a link, and links are not followed here";
    default: return "";
  }
}

// "can't write /a/b: No space left on device; free some there or name another folder".
Error file_error(const std::string& doing, const std::string& path, int errno_value) {
  Error error = system_error("can't " + doing + " " + path, errno_value);
  error.text += cure(errno_value);
  return error;
}

constexpr size_t kDirectFrom = 1 << 20;  // smaller writes gain nothing by bypassing the cache
constexpr size_t kSystemMost = 1 << 30;  // Linux moves at most 2 GiB at once

// An open file; a negative number: none.
class Descriptor final : public Lock {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() override {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  const int fd_;
};

class RealFile final : public File {
 public:
  RealFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  const std::string& name() const override { return path_; }
  Result<uint64_t> size() const override;
  Status read_at(uint64_t offset, archive::Bytes into) const override;
  Status write_at(uint64_t offset, archive::ConstBytes bytes) override;
  Status write_all(std::span<const archive::Piece> pieces) override;
  Status reserve(uint64_t bytes) override;
  Status sync() override;

 private:
  bool opens_directly();
  // Pieces without gaps between them.
  Status write_run(std::span<const archive::Piece> run);
  // Writes whole blocks at the front of a run past the page cache. Returns the bytes written. On
  // failure (unsuitable memory or offset, a full disk) it stops early; the ordinary write continues
  // there and reports the error.
  uint64_t write_directly(std::span<const archive::Piece> run);
  // `from`: what is before it is written.
  Status write_ordinarily(std::span<const archive::Piece> run, uint64_t from);

  const Descriptor fd_;
  std::optional<Descriptor> direct_;  // the same file with O_DIRECT, where it is supported
  DirectWriter::Memory memory_{nullptr, nullptr};
  const std::string path_;
};

Result<uint64_t> RealFile::size() const {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) return file_error("look at", path_, errno);
  return static_cast<uint64_t>(info.st_size);
}

Status RealFile::read_at(uint64_t offset, archive::Bytes into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(fd_.get(), into.data(), std::min(into.size(), kSystemMost),
                                static_cast<off_t>(offset));
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
  const archive::Piece piece{offset, bytes};
  return write_run({&piece, 1});
}

Status RealFile::write_all(std::span<const archive::Piece> pieces) {
  while (!pieces.empty()) {
    size_t count = 1;
    while (count < pieces.size() && pieces[count].offset == pieces[count - 1].end()) ++count;
    if (Status wrote = write_run(pieces.first(count)); !wrote) return wrote;
    pieces = pieces.subspan(count);
  }
  return {};
}

Status RealFile::write_run(std::span<const archive::Piece> run) {
  const uint64_t begin = run.front().offset, bytes = run.back().end() - begin;
  uint64_t done_to = begin;
  if (bytes >= kDirectFrom && begin % archive::kBlock == 0 && opens_directly()) {
    done_to += write_directly(run);
  }
  return write_ordinarily(run, done_to);
}

uint64_t RealFile::write_directly(std::span<const archive::Piece> run) {
  DirectWriter writer(direct_->get(), run.front().offset, memory_);
  for (const archive::Piece& piece : run) {
    const size_t blocks = piece.bytes.size() / archive::kBlock * archive::kBlock;
    if (!writer.add(piece.bytes.first(blocks)) || blocks < piece.bytes.size()) break;
  }
  writer.flush();
  return writer.done();
}

Status RealFile::write_ordinarily(std::span<const archive::Piece> run, uint64_t from) {
  std::vector<iovec> parts;
  for (;;) {
    while (!run.empty() && run.front().end() <= from) run = run.subspan(1);
    if (run.empty()) return {};
    parts.clear();
    for (const archive::Piece& piece : run.first(std::min(run.size(), kWritePartsMost))) {
      const archive::ConstBytes rest =
          piece.bytes.subspan(std::max(from, piece.offset) - piece.offset);
      parts.push_back({const_cast<std::byte*>(rest.data()), rest.size()});
    }
    const ssize_t put = ::pwritev(fd_.get(), parts.data(), static_cast<int>(parts.size()),
                                  static_cast<off_t>(from));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return file_error("write", path_, errno);
    from += static_cast<uint64_t>(put);
  }
}

bool RealFile::opens_directly() {
  if (!direct_)
    direct_.emplace(::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW));
  return direct_->is_open();
}

Status RealFile::reserve(uint64_t bytes) {
  if (::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return {};
  const bool is_unsupported = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
  if (is_unsupported && ::ftruncate(fd_.get(), static_cast<off_t>(bytes)) == 0) return {};
  return file_error("reserve " + std::to_string(bytes) + " bytes for", path_, errno);
}

Status RealFile::sync() {
  if (::fdatasync(fd_.get()) == 0) return {};
  return file_error("bring to the disk", path_, errno);
}

constexpr unsigned kExchange = 1 << 1;  // RENAME_EXCHANGE, missing in old headers

EntryKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::File;
  return S_ISDIR(mode) ? EntryKind::Folder : EntryKind::Other;
}

EntryKind kind_of_entry(const std::string& folder, const dirent& entry) {
  if (entry.d_type == DT_REG) return EntryKind::File;
  if (entry.d_type == DT_DIR) return EntryKind::Folder;
  struct stat info {};
  const bool is_known =
      entry.d_type != DT_UNKNOWN || ::lstat((folder + "/" + entry.d_name).c_str(), &info) != 0;
  return is_known ? EntryKind::Other : kind_of(info.st_mode);
}

class RealFiles final : public FileLayer {
 public:
  Result<std::unique_ptr<File>> create(const std::string& path) override {
    return open(path, O_RDWR | O_CREAT | O_EXCL, "create");
  }
  Result<std::unique_ptr<File>> open_to_write(const std::string& path) override {
    return open(path, O_RDWR | O_NOFOLLOW, "open");
  }
  // Without O_NONBLOCK, opening a pipe would wait for its other end.
  Result<std::unique_ptr<File>> open_to_read(const std::string& path, bool follows_links) override {
    return open(path, O_RDONLY | O_NONBLOCK | (follows_links ? 0 : O_NOFOLLOW), "open");
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return file_error("rename " + from + " to", to, errno);
  }
  Result<bool> exchange(const std::string& a, const std::string& b) override {
    const long done = ::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), kExchange);
    if (done == 0) return true;
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return false;
    return file_error("exchange " + a + " and", b, errno);
  }
  Result<bool> link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) == 0) return true;
    if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK) return false;
    return file_error("link " + from + " to", to, errno);
  }
  Status remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
    return file_error("remove", path, errno);
  }
  Status remove_folder(const std::string& path) override {
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
    return file_error("remove", path, errno);
  }
  Status make_folder(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) == 0) return {};
    return file_error("make the folder", path, errno);
  }
  Status sync_folder(const std::string& path) override {
    const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.is_open()) return file_error("open", path, errno);
    // Some network file systems cannot sync a folder and need not; they return EINVAL.
    if (::fsync(folder.get()) == 0 || errno == EINVAL) return {};
    return file_error("bring to the disk", path, errno);
  }

  Result<std::vector<Entry>> list(const std::string& path) override {
    DIR* folder = ::opendir(path.c_str());
    if (folder == nullptr) return file_error("list", path, errno);
    const std::unique_ptr<DIR, int (*)(DIR*)> closed_at_end(folder, &::closedir);
    std::vector<Entry> all;
    errno = 0;
    while (const dirent* entry = ::readdir(folder)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (all.size() == limits::kSnapshotFolderEntries) {
        return Error{ErrorKind::BadValue, path + " has more than " + std::to_string(all.size()) +
                                              " entries; keep snapshots in a folder of their own"};
      }
      all.push_back({name, kind_of_entry(path, *entry)});
      errno = 0;
    }
    if (errno != 0) return file_error("list", path, errno);
    std::ranges::sort(all, {}, &Entry::name);
    return all;
  }
  Result<Info> info(const std::string& path) override {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return file_error("look at", path, errno);
    return Info{kind_of(info.st_mode), static_cast<uint64_t>(info.st_size), info.st_mtim.tv_sec};
  }
  bool exists(const std::string& path) override {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0;
  }

  std::unique_ptr<Lock> lock_shared(const std::string& path) override {
    auto held = std::make_unique<Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!held->is_open()) return nullptr;
    const auto deadline = std::chrono::steady_clock::now() + limits::kDraftLockTimeout;
    while (::flock(held->get(), LOCK_SH | LOCK_NB) != 0) {
      const bool is_looked_at = errno == EWOULDBLOCK;  // by lock_state() of a sweep
      if (!is_looked_at || std::chrono::steady_clock::now() >= deadline) return nullptr;
      std::this_thread::sleep_for(limits::kDraftLockPause);
    }
    return held;
  }
  LockState lock_state(const std::string& path) override {
    const Descriptor probe(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (!probe.is_open()) return LockState::Unknown;
    if (::flock(probe.get(), LOCK_EX | LOCK_NB) == 0) return LockState::Free;
    return errno == EWOULDBLOCK ? LockState::Held : LockState::Unknown;
  }

 private:
  static Result<std::unique_ptr<File>> open(const std::string& path, int flags, const char* doing) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (fd < 0) return file_error(doing, path, errno);
    auto file = std::make_unique<RealFile>(fd, path);
    struct stat info {};
    if (::fstat(fd, &info) != 0) return file_error("look at", path, errno);
    if (!S_ISREG(info.st_mode)) {
      return Error{ErrorKind::BadValue,
                   path + " is no file" + (S_ISDIR(info.st_mode) ? ", but a folder" : "")};
    }
    return std::unique_ptr<File>(std::move(file));
  }
};

}  // namespace

FileLayer& real_files() {
  static RealFiles files;
  return files;
}

}  // namespace cpprun::snapshot_files

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "common/limits/snapshots.hpp"
#include "snapshot_files/folders/file_errors.hpp"
#include "snapshot_files/folders/file_layer.hpp"
#include "snapshot_files/folders/real_file.hpp"

namespace cpprun::snapshot_files {
namespace {

constexpr unsigned kExchange = 1 << 1;  // RENAME_EXCHANGE, missing in old headers

EntryKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::File;
  return S_ISDIR(mode) ? EntryKind::Folder : EntryKind::Other;
}

class Descriptor : public Lock {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() override {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

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
    if (folder.get() < 0) return file_error("open", path, errno);
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
    if (held->get() < 0 || ::flock(held->get(), LOCK_SH | LOCK_NB) != 0) return nullptr;
    return held;
  }
  LockState lock_state(const std::string& path) override {
    const Descriptor probe(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (probe.get() < 0) return LockState::Unknown;
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

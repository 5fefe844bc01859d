#include "cpprun/snapshot/save/watched_files.hpp"

#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "snapshot_files/archive/plan.hpp"

namespace cpprun::snapshot {

using snapshot_files::File;
using snapshot_files::Lock;
using std::chrono::steady_clock;

struct WatchedFiles::RunningCall {
  std::mutex mutex;
  std::string path;
  std::optional<steady_clock::time_point> since;  // nothing: no call is running
};

// A call of the file system, for as long as this object lives.
class WatchedFiles::Call {
 public:
  Call(RunningCall& running, const std::string& path) : running_(running) {
    const std::scoped_lock lock(running_.mutex);
    running_.path = path;
    running_.since = steady_clock::now();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    const std::scoped_lock lock(running_.mutex);
    running_.since.reset();
  }

 private:
  RunningCall& running_;
};

class WatchedFiles::WatchedFile final : public File {
 public:
  WatchedFile(std::unique_ptr<File> file, std::string path, RunningCall& running, size_t write_most)
      : file_(std::move(file)),
        path_(std::move(path)),
        running_(running),
        write_most_(write_most) {}
  ~WatchedFile() override {
    const Call call(running_, path_);  // to close a file may send what the file server lacks
    file_.reset();
  }

  const std::string& name() const override { return file_->name(); }
  Result<uint64_t> size() const override {
    const Call call(running_, path_);
    return file_->size();
  }
  Status read_at(uint64_t offset, archive::Bytes into) const override {
    const Call call(running_, path_);
    return file_->read_at(offset, into);
  }
  Status write_at(uint64_t offset, archive::ConstBytes bytes) override {
    const archive::Piece piece{offset, bytes};
    return write_all({&piece, 1});
  }
  Status write_all(std::span<const archive::Piece> pieces) override;
  Status reserve(uint64_t bytes) override {
    const Call call(running_, path_);
    return file_->reserve(bytes);
  }
  Status sync() override {
    const Call call(running_, path_);
    return file_->sync();
  }

 private:
  Status write(const std::vector<archive::Piece>& batch) {
    const Call call(running_, path_);
    return file_->write_all(batch);
  }

  std::unique_ptr<File> file_;
  const std::string path_;
  RunningCall& running_;
  const size_t write_most_;
};

// Cuts pieces at multiples of a block, because other writes do not bypass the page cache.
Status WatchedFiles::WatchedFile::write_all(std::span<const archive::Piece> pieces) {
  std::vector<archive::Piece> batch;
  size_t room = write_most_;
  for (archive::Piece piece : pieces) {
    while (piece.bytes.size() > room) {
      const uint64_t end = (piece.offset + room) / archive::kBlock * archive::kBlock;
      const size_t first = end > piece.offset ? static_cast<size_t>(end - piece.offset) : 0;
      if (first > 0) batch.push_back({piece.offset, piece.bytes.first(first)});
      if (Status wrote = write(batch); !wrote) return wrote;
      batch.clear();
      piece = {piece.offset + first, piece.bytes.subspan(first)};
      room = write_most_;
    }
    batch.push_back(piece);
    room -= piece.bytes.size();
  }
  return batch.empty() ? Status() : write(batch);
}

class WatchedFiles::WatchedLock final : public Lock {
 public:
  WatchedLock(std::unique_ptr<Lock> lock, std::string path, RunningCall& running)
      : lock_(std::move(lock)), path_(std::move(path)), running_(running) {}
  ~WatchedLock() override {
    const Call call(running_, path_);
    lock_.reset();
  }

 private:
  std::unique_ptr<Lock> lock_;
  const std::string path_;
  RunningCall& running_;
};

WatchedFiles::WatchedFiles(FileLayer& files, size_t write_most)
    : files_(files), write_most_(write_most), running_(std::make_unique<RunningCall>()) {}
WatchedFiles::~WatchedFiles() = default;

std::string WatchedFiles::unanswered(Duration limit) const {
  const std::scoped_lock lock(running_->mutex);
  const bool is_late = running_->since && steady_clock::now() - *running_->since > limit;
  return is_late ? running_->path : "";
}

Result<std::unique_ptr<File>> WatchedFiles::watched(Result<std::unique_ptr<File>> file,
                                                    const std::string& path) {
  if (!file) return file;
  return std::unique_ptr<File>(
      std::make_unique<WatchedFile>(std::move(*file), path, *running_, write_most_));
}

Result<std::unique_ptr<File>> WatchedFiles::create(const std::string& path) {
  const Call call(*running_, path);
  return watched(files_.create(path), path);
}

Result<std::unique_ptr<File>> WatchedFiles::open_to_write(const std::string& path) {
  const Call call(*running_, path);
  return watched(files_.open_to_write(path), path);
}

Result<std::unique_ptr<File>> WatchedFiles::open_to_read(const std::string& path,
                                                         bool follows_links) {
  const Call call(*running_, path);
  return watched(files_.open_to_read(path, follows_links), path);
}

Status WatchedFiles::rename(const std::string& from, const std::string& to) {
  const Call call(*running_, to);
  return files_.rename(from, to);
}

Result<bool> WatchedFiles::exchange(const std::string& a, const std::string& b) {
  const Call call(*running_, b);
  return files_.exchange(a, b);
}

Result<bool> WatchedFiles::link(const std::string& from, const std::string& to) {
  const Call call(*running_, to);
  return files_.link(from, to);
}

Status WatchedFiles::remove_file(const std::string& path) {
  const Call call(*running_, path);
  return files_.remove_file(path);
}

Status WatchedFiles::remove_folder(const std::string& path) {
  const Call call(*running_, path);
  return files_.remove_folder(path);
}

Status WatchedFiles::make_folder(const std::string& path) {
  const Call call(*running_, path);
  return files_.make_folder(path);
}

Status WatchedFiles::sync_folder(const std::string& path) {
  const Call call(*running_, path);
  return files_.sync_folder(path);
}

Result<std::vector<snapshot_files::Entry>> WatchedFiles::list(const std::string& path) {
  const Call call(*running_, path);
  return files_.list(path);
}

Result<snapshot_files::Info> WatchedFiles::info(const std::string& path) {
  const Call call(*running_, path);
  return files_.info(path);
}

bool WatchedFiles::exists(const std::string& path) {
  const Call call(*running_, path);
  return files_.exists(path);
}

std::unique_ptr<Lock> WatchedFiles::lock_shared(const std::string& path) {
  const Call call(*running_, path);
  std::unique_ptr<Lock> lock = files_.lock_shared(path);
  if (!lock) return nullptr;
  return std::make_unique<WatchedLock>(std::move(lock), path, *running_);
}

snapshot_files::LockState WatchedFiles::lock_state(const std::string& path) {
  const Call call(*running_, path);
  return files_.lock_state(path);
}

}  // namespace cpprun::snapshot

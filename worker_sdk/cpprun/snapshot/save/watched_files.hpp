// WatchedFiles: a FileLayer that shows other threads whether a call has waited too long, as for a
// file server that is gone. Python counterpart: waiting_for() and unanswered() of
// cpprun_worker/_snapshot/files.py. Private to snapshot.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/time.hpp"
#include "snapshot_files/folders/file_layer.hpp"

namespace cpprun::snapshot {

// Passes each call to another FileLayer. One thread makes the calls; unanswered() is for any.
class WatchedFiles final : public snapshot_files::FileLayer {
 public:
  // Bytes of one write, so that the end of each write shows that the file server answers.
  static constexpr size_t kWriteMost = 256 << 20;

  // `files` must outlive it, and it must outlive the files and locks that it returns. `write_most`:
  // at least archive::kBlock.
  explicit WatchedFiles(FileLayer& files, size_t write_most = kWriteMost);
  ~WatchedFiles() override;

  // The path of a call that has lasted longer than `limit` so far; empty: there is none.
  std::string unanswered(Duration limit) const;

  Result<std::unique_ptr<snapshot_files::File>> create(const std::string& path) override;
  Result<std::unique_ptr<snapshot_files::File>> open_to_write(const std::string& path) override;
  Result<std::unique_ptr<snapshot_files::File>> open_to_read(const std::string& path,
                                                             bool follows_links) override;
  Status rename(const std::string& from, const std::string& to) override;
  Result<bool> exchange(const std::string& a, const std::string& b) override;
  Result<bool> link(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_folder(const std::string& path) override;
  Status make_folder(const std::string& path) override;
  Status sync_folder(const std::string& path) override;
  Result<std::vector<snapshot_files::Entry>> list(const std::string& path) override;
  Result<snapshot_files::Info> info(const std::string& path) override;
  bool exists(const std::string& path) override;
  std::unique_ptr<snapshot_files::Lock> lock_shared(const std::string& path) override;
  snapshot_files::LockState lock_state(const std::string& path) override;

 private:
  class Call;
  class WatchedFile;
  class WatchedLock;
  struct RunningCall;

  Result<std::unique_ptr<snapshot_files::File>> watched(
      Result<std::unique_ptr<snapshot_files::File>> file, const std::string& path);

  FileLayer& files_;
  const size_t write_most_;
  const std::unique_ptr<RunningCall> running_;
};

}  // namespace cpprun::snapshot

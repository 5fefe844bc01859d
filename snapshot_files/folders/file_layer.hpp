// FileLayer: the only way in which snapshots touch the disk; real_files() is the real one, tests
// have one that fails on purpose.
//
// Errors (System) name the path, what the system said and the cure. Thread-safe; a File belongs to
// one thread at a time, but for reading.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/archive/bytes.hpp"

namespace cpprun::snapshot_files {

// An open file. Closes without saying anything when it goes: what must be on the disk is synced.
class File : public archive::Source, public archive::Output {
 public:
  // Reserves the space, so that a full disk is told before the work; the file has this size then.
  virtual Status reserve(uint64_t bytes) = 0;
  // Everything written through this File is on the disk when it returns.
  virtual Status sync() = 0;
};

enum class EntryKind { File, Folder, Other };  // a link is Other, whatever it names

struct Entry {
  std::string name;
  EntryKind kind = EntryKind::Other;
};

struct Info {
  EntryKind kind = EntryKind::Other;
  uint64_t bytes = 0;
  int64_t changed_at = 0;  // seconds since 1970
};

// Held as long as the object lives.
class Lock {
 public:
  virtual ~Lock() = default;
};

enum class LockState {
  Free,     // nobody holds it
  Held,     // somebody does
  Unknown,  // the file system has no such locks
};

class FileLayer {
 public:
  virtual ~FileLayer() = default;

  // A new file; one that is there is an error.
  virtual Result<std::unique_ptr<File>> create(const std::string& path) = 0;
  // To write into a file that another has created.
  virtual Result<std::unique_ptr<File>> open_to_write(const std::string& path) = 0;
  // Only regular files; a link at the end of the path is refused unless `follows_links`.
  virtual Result<std::unique_ptr<File>> open_to_read(const std::string& path,
                                                     bool follows_links = false) = 0;

  // Replaces `to` in one step. Not on the disk before sync_folder.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Each gets the other's name in one step. False: this file system cannot.
  virtual Result<bool> exchange(const std::string& a, const std::string& b) = 0;
  // A second name. False: this file system has none.
  virtual Result<bool> link(const std::string& from, const std::string& to) = 0;
  // What is not there counts as removed.
  virtual Status remove_file(const std::string& path) = 0;
  virtual Status remove_folder(const std::string& path) = 0;  // an empty one
  // One that is there is an error.
  virtual Status make_folder(const std::string& path) = 0;
  virtual Status sync_folder(const std::string& path) = 0;

  // Without "." and "..", sorted by name. Error: not there, or more than
  // limits::kSnapshotFolderEntries.
  virtual Result<std::vector<Entry>> list(const std::string& path) = 0;
  // Of the entry itself, not of what a link names.
  virtual Result<Info> info(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;

  // Says "I am at work here" on a file or folder to everybody on this machine. Null: the file
  // system has no locks.
  virtual std::unique_ptr<Lock> lock_shared(const std::string& path) = 0;
  virtual LockState lock_state(const std::string& path) = 0;
};

// The real disk. Writes of big blocks go past the page cache where the file system allows.
FileLayer& real_files();

}  // namespace cpprun::snapshot_files

// FileLayer: the interface through which snapshots use the disk; real_files() is the real one,
// tests inject failures with theirs.
//
// Errors (System) name the path, the system's message and the cure. Thread-safe; a File belongs to
// one thread at a time, except for reading.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/archive/bytes.hpp"

namespace cpprun::snapshot_files {

// An open file. The destructor closes it and ignores errors: sync() first.
class File : public archive::Source, public archive::Output {
 public:
  // Sets the size and reserves the space, so that a full disk fails here and not during the writes.
  virtual Status reserve(uint64_t bytes) = 0;
  // Returns when everything written through this File is on the disk.
  virtual Status sync() = 0;
};

enum class EntryKind { File, Folder, Other };  // a link is Other, whatever its target

struct Entry {
  std::string name;
  EntryKind kind = EntryKind::Other;
};

struct Info {
  EntryKind kind = EntryKind::Other;
  uint64_t bytes = 0;
  int64_t changed_at = 0;  // seconds since 1970
};

// Holds a lock as long as the object lives.
class Lock {
 public:
  virtual ~Lock() = default;
};

enum class LockState {
  Free,     // no process holds it
  Held,     // some process holds it
  Unknown,  // the file system has no such locks
};

class FileLayer {
 public:
  virtual ~FileLayer() = default;

  // Creates a file; an existing one is an error.
  virtual Result<std::unique_ptr<File>> create(const std::string& path) = 0;
  // Opens an existing file, which may be another process's, for writing.
  virtual Result<std::unique_ptr<File>> open_to_write(const std::string& path) = 0;
  // Only regular files; refuses a link as the last part of the path unless `follows_links`.
  virtual Result<std::unique_ptr<File>> open_to_read(const std::string& path,
                                                     bool follows_links = false) = 0;

  // Replaces `to` atomically. Durable only after sync_folder.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Exchanges the names atomically. False: the file system does not support that.
  virtual Result<bool> exchange(const std::string& a, const std::string& b) = 0;
  // Creates a hard link. False: the file system does not support that.
  virtual Result<bool> link(const std::string& from, const std::string& to) = 0;
  // A missing file counts as removed.
  virtual Status remove_file(const std::string& path) = 0;
  virtual Status remove_folder(const std::string& path) = 0;  // must be empty
  // An existing folder is an error.
  virtual Status make_folder(const std::string& path) = 0;
  virtual Status sync_folder(const std::string& path) = 0;

  // Without "." and "..", sorted by name. Error: missing, or more than
  // limits::kSnapshotFolderEntries entries.
  virtual Result<std::vector<Entry>> list(const std::string& path) = 0;
  // Of the entry itself, not of a link's target.
  virtual Result<Info> info(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;

  // Marks a file or folder as in use, for all processes on this machine. Waits while another one
  // looks at its lock. Null: the file system has no locks.
  virtual std::unique_ptr<Lock> lock_shared(const std::string& path) = 0;
  virtual LockState lock_state(const std::string& path) = 0;
};

// The real disk. Writes of big blocks bypass the page cache where the file system allows it.
FileLayer& real_files();

}  // namespace cpprun::snapshot_files

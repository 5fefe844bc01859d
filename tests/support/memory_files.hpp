// MemoryFiles: a disk in memory that remembers what was synced, fails any one operation on demand,
// and can lose its power. For tests of what a save leaves behind.
//
// Each change (create, write, reserve, sync, rename ...) has a number, from 0 on. A file's bytes
// are on the disk after sync(), a folder's names after sync_folder(); a power cut may take away
// what is not, each file and each folder by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "snapshot_files/folders/file_layer.hpp"

namespace cpprun::test {

// Thrown by the operation at which the power goes; whoever writes is no more.
struct PowerCut {};

enum class Fault {
  Fail,  // the operation is refused, as by a full disk; the writer goes on and may clear up
  Half,  // a write stops half way, then Fail; other operations: Fail
  Cut,   // PowerCut instead of the operation
  HalfAndCut,
};

class MemoryFiles final : public snapshot_files::FileLayer {
 public:
  MemoryFiles();

  // The operation with this number, counted from now on, meets `fault`.
  void inject(size_t operation, Fault fault);
  void heal() { fault_.reset(); }
  size_t operations() const { return next_; }
  bool has_exchange = true;
  int64_t changed_at = 0;  // what info() says of everything

  // After PowerCut: `survives()` is asked of every file and folder with something not synced.
  void lose_power(const std::function<bool()>& survives);
  // Open files and locks of dead writers.
  void forget_locks() { locks_->clear(); }
  std::string content(const std::string& path) const;

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
  friend class MemoryFile;
  struct Node {
    bool is_folder = false;
    std::string bytes, synced_bytes;
    std::map<std::string, std::shared_ptr<Node>> names, synced_names;
  };
  using NodePtr = std::shared_ptr<Node>;
  using Locks = std::map<const Node*, int>;

  NodePtr find(const std::string& path) const;
  // The folder that `path` lies in, and its name there.
  NodePtr above(const std::string& path, std::string& name) const;
  // Every change asks first. True: only half of a write is to happen.
  Result<bool> step(const std::string& what);
  void settle(Node& node, const std::function<bool()>& survives);

  NodePtr root_;
  std::shared_ptr<Locks> locks_ = std::make_shared<Locks>();
  size_t next_ = 0;
  std::optional<std::pair<size_t, Fault>> fault_;
};

}  // namespace cpprun::test

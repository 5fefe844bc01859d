// MemoryFiles: a disk in memory that remembers what was synced, fails any one operation on demand,
// and can lose its power. For tests of the state after a save.
//
// Each change (create, write, reserve, sync, rename ...) has a number, from 0 on. A file's bytes
// are on the disk after sync(), a folder's names after sync_folder(); a power cut may drop
// everything else, each file and each folder independently.
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

// The operation at which the power goes throws it; the writer counts as dead.
struct PowerCut {};

enum class Fault {
  Fail,  // the operation fails, as on a full disk; the writer continues and may clean up
  Half,  // a write stops half way, then Fail; other operations: Fail
  Cut,   // PowerCut instead of the operation
  HalfAndCut,
};

class MemoryFiles final : public snapshot_files::FileLayer {
 public:
  MemoryFiles();

  // The operation with this number, counted from now, meets `fault`.
  void inject(size_t operation, Fault fault);
  void heal() { fault_.reset(); }
  size_t operations() const { return next_; }
  bool has_exchange = true;
  std::function<void()> before_change;  // may block, as a file server that is gone
  int64_t changed_at = 0;               // the device number in every info()

  // After PowerCut: asks `survives()` for every file and folder with unsynced changes.
  void lose_power(const std::function<bool()>& survives);
  // Closes files and locks of dead writers.
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
  // The parent folder of `path`, and the name in it.
  NodePtr above(const std::string& path, std::string& name) const;
  // Every change calls this first. True: do only half of the write.
  Result<bool> step(const std::string& what);
  void settle(Node& node, const std::function<bool()>& survives);

  NodePtr root_;
  std::shared_ptr<Locks> locks_ = std::make_shared<Locks>();
  size_t next_ = 0;
  std::optional<std::pair<size_t, Fault>> fault_;
};

}  // namespace cpprun::test

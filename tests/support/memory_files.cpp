#include "tests/support/memory_files.hpp"

#include <cerrno>
#include <cstring>

#include "common/text.hpp"

namespace cpprun::test {

using namespace snapshot_files;

class MemoryFile final : public File {
 public:
  MemoryFile(MemoryFiles& files, MemoryFiles::NodePtr node, std::string path)
      : files_(files), node_(std::move(node)), path_(std::move(path)) {}

  const std::string& name() const override { return path_; }
  Result<uint64_t> size() const override { return uint64_t{node_->bytes.size()}; }
  Status read_at(uint64_t offset, archive::Bytes into) const override {
    return archive::MemorySource(archive::bytes_of(node_->bytes), path_).read_at(offset, into);
  }
  Status write_at(uint64_t offset, archive::ConstBytes bytes) override {
    Result<bool> half = files_.step("write " + path_);
    if (!half) return half.error();
    if (*half) bytes = bytes.first(bytes.size() / 2);
    node_->bytes.resize(std::max<size_t>(node_->bytes.size(), offset + bytes.size()));
    if (!bytes.empty()) std::memcpy(node_->bytes.data() + offset, bytes.data(), bytes.size());
    if (!*half) return {};
    if (files_.fault_->second == Fault::HalfAndCut) throw PowerCut();
    return system_error("can't write " + path_, ENOSPC);
  }
  Status reserve(uint64_t bytes) override {
    Result<bool> half = files_.step("reserve " + path_);
    if (!half || *half) return system_error("can't reserve " + path_, ENOSPC);
    node_->bytes.resize(bytes);
    return {};
  }
  Status sync() override {
    Result<bool> half = files_.step("sync " + path_);
    if (!half || *half) return system_error("can't sync " + path_, EIO);
    node_->synced_bytes = node_->bytes;
    return {};
  }

 private:
  MemoryFiles& files_;
  const MemoryFiles::NodePtr node_;
  const std::string path_;
};

namespace {

class MemoryLock final : public Lock {
 public:
  explicit MemoryLock(std::function<void()> release) : release_(std::move(release)) {}
  ~MemoryLock() override { release_(); }
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;

 private:
  const std::function<void()> release_;
};

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts = text::split(path, '/');
  std::erase_if(parts, [](const std::string& part) { return part.empty() || part == "."; });
  return parts;
}

Error refused(const std::string& what, int errno_value) {
  return system_error("can't " + what, errno_value);
}

}  // namespace

MemoryFiles::MemoryFiles() : root_(std::make_shared<Node>()) { root_->is_folder = true; }

void MemoryFiles::inject(size_t operation, Fault fault) {
  next_ = 0;
  fault_ = {operation, fault};
}

Result<bool> MemoryFiles::step(const std::string& what) {
  if (before_change) before_change();
  const size_t number = next_++;
  if (!fault_ || fault_->first != number) return false;
  const Fault fault = fault_->second;
  const bool is_write = what.starts_with("write");
  if (is_write && (fault == Fault::Half || fault == Fault::HalfAndCut)) return true;
  if (fault == Fault::Cut || fault == Fault::HalfAndCut) throw PowerCut();
  return refused(what, ENOSPC);
}

void MemoryFiles::settle(Node& node, const std::function<bool()>& survives) {
  if (node.is_folder) {
    if (node.names != node.synced_names && !survives()) node.names = node.synced_names;
    node.synced_names = node.names;
    for (auto& [name, child] : node.names) settle(*child, survives);
  } else if (node.bytes != node.synced_bytes) {
    if (!survives()) node.bytes = node.synced_bytes;
    node.synced_bytes = node.bytes;
  }
}

void MemoryFiles::lose_power(const std::function<bool()>& survives) {
  heal();
  settle(*root_, survives);
  forget_locks();
}

MemoryFiles::NodePtr MemoryFiles::find(const std::string& path) const {
  NodePtr node = root_;
  for (const std::string& part : parts_of(path)) {
    const auto found = node->names.find(part);
    if (found == node->names.end()) return nullptr;
    node = found->second;
  }
  return node;
}

MemoryFiles::NodePtr MemoryFiles::above(const std::string& path, std::string& name) const {
  std::vector<std::string> parts = parts_of(path);
  name = parts.back();
  parts.pop_back();
  return find(text::join(parts, "/"));
}

std::string MemoryFiles::content(const std::string& path) const {
  const NodePtr node = find(path);
  return node == nullptr ? "" : node->bytes;
}

Result<std::unique_ptr<File>> MemoryFiles::create(const std::string& path) {
  if (Result<bool> may = step("create " + path); !may) return may.error();
  std::string name;
  const NodePtr folder = above(path, name);
  if (folder == nullptr) return refused("create " + path, ENOENT);
  if (folder->names.contains(name)) return refused("create " + path, EEXIST);
  const NodePtr node = folder->names[name] = std::make_shared<Node>();
  return std::unique_ptr<File>(new MemoryFile(*this, node, path));
}

Result<std::unique_ptr<File>> MemoryFiles::open_to_write(const std::string& path) {
  return open_to_read(path, false);
}
Result<std::unique_ptr<File>> MemoryFiles::open_to_read(const std::string& path, bool) {
  const NodePtr node = find(path);
  if (node == nullptr || node->is_folder) return refused("open " + path, ENOENT);
  return std::unique_ptr<File>(new MemoryFile(*this, node, path));
}

Status MemoryFiles::rename(const std::string& from, const std::string& to) {
  if (Result<bool> may = step("rename " + from); !may) return may.error();
  std::string from_name, to_name;
  const NodePtr from_folder = above(from, from_name), to_folder = above(to, to_name);
  const NodePtr node = find(from), old = find(to);
  if (node == nullptr || to_folder == nullptr) return refused("rename " + from, ENOENT);
  if (old != nullptr && old->is_folder && !old->names.empty()) {
    return refused("rename " + from, ENOTEMPTY);
  }
  from_folder->names.erase(from_name);
  to_folder->names[to_name] = node;
  return {};
}

Result<bool> MemoryFiles::exchange(const std::string& a, const std::string& b) {
  if (!has_exchange) return false;
  if (Result<bool> may = step("exchange " + a); !may) return may.error();
  std::string a_name, b_name;
  const NodePtr a_folder = above(a, a_name), b_folder = above(b, b_name);
  if (find(a) == nullptr || find(b) == nullptr) return refused("exchange " + a, ENOENT);
  std::swap(a_folder->names[a_name], b_folder->names[b_name]);
  return true;
}

Result<bool> MemoryFiles::link(const std::string& from, const std::string& to) {
  if (Result<bool> may = step("link " + from); !may) return may.error();
  std::string name;
  above(to, name)->names[name] = find(from);
  return true;
}

Status MemoryFiles::remove_file(const std::string& path) {
  if (Result<bool> may = step("remove " + path); !may) return may.error();
  std::string name;
  if (const NodePtr folder = above(path, name)) folder->names.erase(name);
  return {};
}

Status MemoryFiles::remove_folder(const std::string& path) {
  const NodePtr node = find(path);
  if (node != nullptr && !node->names.empty()) return refused("remove " + path, ENOTEMPTY);
  return remove_file(path);
}

Status MemoryFiles::make_folder(const std::string& path) {
  if (Result<bool> may = step("make " + path); !may) return may.error();
  std::string name;
  const NodePtr folder = above(path, name);
  if (folder == nullptr || folder->names.contains(name)) return refused("make " + path, EEXIST);
  folder->names[name] = std::make_shared<Node>();
  folder->names[name]->is_folder = true;
  return {};
}

Status MemoryFiles::sync_folder(const std::string& path) {
  if (Result<bool> may = step("sync " + path); !may) return may.error();
  const NodePtr node = find(path);
  if (node == nullptr) return refused("sync " + path, ENOENT);
  node->synced_names = node->names;
  return {};
}

Result<std::vector<Entry>> MemoryFiles::list(const std::string& path) {
  const NodePtr node = find(path);
  if (node == nullptr) return refused("list " + path, ENOENT);
  std::vector<Entry> all;
  for (const auto& [name, child] : node->names) {
    all.push_back({name, child->is_folder ? EntryKind::Folder : EntryKind::File});
  }
  return all;
}

Result<Info> MemoryFiles::info(const std::string& path) {
  const NodePtr node = find(path);
  if (node == nullptr) return refused("look at " + path, ENOENT);
  return Info{node->is_folder ? EntryKind::Folder : EntryKind::File, node->bytes.size(),
              changed_at};
}

bool MemoryFiles::exists(const std::string& path) { return find(path) != nullptr; }

std::unique_ptr<Lock> MemoryFiles::lock_shared(const std::string& path) {
  const NodePtr node = find(path);
  if (node == nullptr) return nullptr;
  ++(*locks_)[node.get()];
  return std::make_unique<MemoryLock>([locks = locks_, node] {
    const auto found = locks->find(node.get());
    if (found != locks->end() && --found->second == 0) locks->erase(found);
  });
}

LockState MemoryFiles::lock_state(const std::string& path) {
  const NodePtr node = find(path);
  if (node == nullptr) return LockState::Unknown;
  return locks_->contains(node.get()) ? LockState::Held : LockState::Free;
}

}  // namespace cpprun::test

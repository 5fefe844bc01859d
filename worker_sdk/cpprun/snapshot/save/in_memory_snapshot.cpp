#include "cpprun/snapshot/save/in_memory_snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/archive/stream_copy.hpp"
#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::List;
using pickle::Value;
using snapshot_files::ArenaSlots;
using snapshot_files::Slot;
using snapshot_files::SlotLabel;

// A slot's content ends with the index and the length of the index.
constexpr size_t kLength = sizeof(uint64_t);

Error broken(const std::string& what) {
  return {ErrorKind::Protocol, "the copy in memory can't be used: " + what};
}

Value file_value(const StagedFile& file, std::span<const std::byte> memory) {
  List parts;
  for (size_t i = 0; i < file.parts.size(); ++i) {
    const ShardRange& part = file.parts[i];
    const int64_t at = file.mine[i].data() == nullptr ? -1 : file.mine[i].data() - memory.data();
    parts.items.emplace_back(List{
        {part.storage, static_cast<int64_t>(part.from), static_cast<int64_t>(part.bytes), at}});
  }
  return List{{file.name, file.value, std::move(parts)}};
}

struct IndexedPart {
  uint64_t from = 0, bytes = 0;
  std::optional<uint64_t> at;  // offset in the slot, if this slot holds the part
};
struct IndexedFile {
  std::string name;
  Value value;
  std::map<std::string, std::vector<IndexedPart>, std::less<>> parts;  // by storage
};

Result<IndexedFile> read_file(const Value& value, size_t content_bytes) {
  const auto* list = value.get_if<List>();
  if (list == nullptr || list->items.size() != 3) return broken("a file");
  const auto* name = list->items[0].get_if<std::string>();
  const auto* parts = list->items[2].get_if<List>();
  if (name == nullptr || parts == nullptr) return broken("a file's name");
  IndexedFile file{*name, list->items[1], {}};
  for (const Value& each : parts->items) {
    const auto fields = pickle::unpack<std::string, int64_t, int64_t, int64_t>(each);
    if (!fields) return broken("a part");
    const auto [storage, from, bytes, at] = *fields;
    if (*from < 0 || *bytes < 0) return broken("a part");
    IndexedPart part{static_cast<uint64_t>(*from), static_cast<uint64_t>(*bytes), {}};
    if (*at >= 0) part.at = static_cast<uint64_t>(*at);
    if (part.at && (*part.at > content_bytes || part.bytes > content_bytes - *part.at)) {
      return broken("a part");
    }
    file.parts[*storage].push_back(part);
  }
  return file;
}

struct Index {
  std::string owner;
  std::vector<IndexedFile> files;  // the last is the rank's own
};

Value index_value(const std::string& owner, const Staged& staged,
                  std::span<const std::byte> memory) {
  List index{{owner}};
  for (const StagedFile& file : staged.shared) index.items.push_back(file_value(file, memory));
  index.items.push_back(file_value(staged.own, memory));
  return index;
}

Result<Index> read_index(std::span<const std::byte> content) {
  uint64_t length = 0;
  if (content.size() < kLength) return broken("it is too short");
  std::memcpy(&length, content.data() + content.size() - kLength, kLength);
  if (length > content.size() - kLength) return broken("its index is too long");
  const auto bytes = content.subspan(content.size() - kLength - length, length);
  const auto index = pickle::read({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!index) return broken(index.error().text);
  const auto* list = index->get_if<List>();
  if (list == nullptr || list->items.size() < 2) return broken("its index");
  const auto* owner = list->items[0].get_if<std::string>();
  if (owner == nullptr) return broken("its owner");
  Index found{*owner, {}};
  for (size_t i = 1; i < list->items.size(); ++i) {
    Result<IndexedFile> file = read_file(list->items[i], content.size());
    if (!file) return file.error();
    found.files.push_back(std::move(*file));
  }
  return found;
}

// A slot of a rank of this node.
struct OpenSlot {
  std::shared_ptr<const worker::Arena> arena;  // null: the arena of this rank
  std::span<const std::byte> content;
  std::vector<IndexedFile> files;
};

// Reads slots as the storages of a file.
class SlotStorages final : public Storages {
 public:
  SlotStorages(std::shared_ptr<const std::vector<OpenSlot>> slots, std::vector<size_t> which,
               size_t file)
      : slots_(std::move(slots)), which_(std::move(which)), file_(file) {}

  Status read(const std::string& name, uint64_t from, std::span<std::byte> into) const override {
    uint64_t done = 0;
    for (const size_t which : which_) {
      const OpenSlot& slot = (*slots_)[which];
      const auto& parts = slot.files[file_].parts;
      const auto found = parts.find(name);
      if (found == parts.end()) continue;
      for (const IndexedPart& part : found->second) {
        if (!part.at) continue;
        const uint64_t begin = std::max(from, part.from);
        const uint64_t end = std::min(from + into.size(), part.from + part.bytes);
        if (begin >= end) continue;
        archive::stream_copy(into.data() + (begin - from),
                             slot.content.data() + *part.at + (begin - part.from), end - begin);
        done += end - begin;
      }
    }
    return done == into.size() ? Status() : broken("storage '" + name + "' is not all there");
  }

 private:
  std::shared_ptr<const std::vector<OpenSlot>> slots_;
  std::vector<size_t> which_;
  size_t file_;
};

// The crc32 of the whole slot; the same pass sets those of the parts, which the writer of the files
// needs. Two passes took as long as the copy (97 ms per GiB). Parts lie in the order of the files.
uint32_t slot_crc32(Staged& staged, std::span<const std::byte> slot) {
  uint32_t crc = 0;
  const std::byte* done = slot.data();
  const auto add_file = [&](StagedFile& file) {
    for (size_t i = 0; i < file.parts.size(); ++i) {
      const archive::ConstBytes part = file.mine[i];
      if (part.data() == nullptr) continue;
      crc = archive::crc32({done, part.data()}, crc);
      if (!file.crc32s[i]) file.crc32s[i] = archive::crc32(part);
      // Below this size combining costs more than a second pass.
      const bool is_big = part.size() >= archive::kBigStorage;
      crc = is_big ? archive::crc32_combine(crc, *file.crc32s[i], part.size())
                   : archive::crc32(part, crc);
      done = part.data() + part.size();
    }
  };
  for (StagedFile& file : staged.shared) add_file(file);
  add_file(staged.own);
  return archive::crc32({done, slot.data() + slot.size()}, crc);
}

// Only the first owner of a process gets the arena that outlives the process.
bool is_first_owner(const std::string& owner) {
  static std::mutex mutex;
  static std::optional<std::string> first;
  const std::scoped_lock lock(mutex);
  if (!first) first = owner;
  return *first == owner;
}

std::optional<Slot> slot_of(std::span<const std::byte> arena, SlotLabel label, int rank) {
  label.rank = rank;
  for (const Slot& slot : snapshot_files::slots_of(arena)) {
    if (slot.label == label) return slot;
  }
  return std::nullopt;
}

}  // namespace

bool InMemorySnapshot::is_lasting() const { return serves_ && is_first_owner(owner_); }

bool InMemorySnapshot::can_keep(std::optional<size_t> written_at) const {
  if (!is_lasting() || !arena_ || !arena_->outlives_process()) return false;
  if (!written_at) return true;
  const std::optional<Slot> newest = slots_->newest();
  return newest && slots_->offset_of(newest->content) == *written_at;
}

// Growing the arena keeps its content.
Status InMemorySnapshot::open(size_t bytes) {
  slots_.reset();
  arena_.reset();
  Result<worker::Arena> arena =
      is_first_owner(owner_) ? worker::Arena::own(bytes) : worker::Arena::of_process(bytes);
  if (!arena) return arena.error();
  arena_ = std::make_shared<worker::Arena>(std::move(*arena));
  slots_.emplace(arena_->writable());
  seen_.clear();
  return {};
}

Result<std::span<std::byte>> InMemorySnapshot::begin(const SlotLabel& label, Staged& staged,
                                                     uint64_t bytes,
                                                     std::optional<size_t> written_at) {
  // The offsets of parts are not known yet; at most nine bytes each are reserved for them.
  const Value index = index_value(owner_, staged, {});
  size_t parts = staged.own.parts.size();
  for (const StagedFile& file : staged.shared) parts += file.parts.size();
  const size_t room = bytes + archive::kBlock + pickle::write(index).size() + 16 * parts + kLength;
  const size_t wanted = ArenaSlots::arena_bytes(room);
  if (!arena_ || arena_->bytes().size() < wanted) {
    if (Status grown = open(wanted); !grown) return grown.error();
  }
  Result<std::span<std::byte>> slot = slots_->begin(label, room, written_at);
  if (!slot && written_at) {
    return Error{ErrorKind::BadValue,
                 "no memory for it: the state has grown, and the last save is still being written"};
  }
  if (!slot) return slot.error();
  begun_ = *slot;
  staged.arena = arena_;
  staged.slot_at = slots_->offset_of(begun_);
  if (seen_.insert(begun_.data()).second) arena_->use_huge_pages(begun_);
  const auto address = reinterpret_cast<uintptr_t>(begun_.data());
  const size_t skipped = (archive::kBlock - address % archive::kBlock) % archive::kBlock;
  return begun_.subspan(skipped, bytes);
}

void InMemorySnapshot::write_index(Staged& staged) {
  const std::string text = pickle::write(index_value(owner_, staged, begun_));
  const uint64_t length = text.size();
  std::byte* const end = begun_.data() + begun_.size();
  std::memcpy(end - kLength - length, text.data(), length);
  std::memcpy(end - kLength, &length, kLength);
  slots_->staged(slot_crc32(staged, begun_));
}

void InMemorySnapshot::complete(int64_t step) { slots_->complete(step); }

std::vector<SlotLabel> InMemorySnapshot::found(int rank, int world) {
  if (!arena_ && !open(0)) return {};
  std::vector<SlotLabel> labels;
  for (const Slot& slot : snapshot_files::slots_of(arena_->bytes())) {
    if (slot.label.rank != rank || slot.label.world_size != world) continue;
    const Result<Index> index = read_index(slot.content);
    if (index && index->owner == owner_) labels.push_back(slot.label);
  }
  return labels;
}

Status InMemorySnapshot::verify(const SlotLabel& label) {
  const auto slot = slot_of(arena_->bytes(), label, label.rank);
  if (!slot) return broken("it is gone");
  if (archive::crc32(slot->content) != slot->crc32) return broken("its checksum differs");
  return {};
}

Result<Loaded> InMemorySnapshot::load(const SlotLabel& label, const Group& group,
                                      const NodeRanks& neighbours) {
  auto slots = std::make_shared<std::vector<OpenSlot>>();
  size_t own = 0;
  for (const int member : group.node_of(label.rank)) {
    OpenSlot open;
    std::span<const std::byte> bytes = arena_->bytes();
    if (member == label.rank) {
      own = slots->size();
    } else {
      const auto local = neighbours.local_rank_of(member);
      if (!local) return broken("rank " + std::to_string(member) + " is on another node");
      Result<worker::Arena> arena = worker::Arena::of(*local);
      if (!arena) return arena.error();
      open.arena = std::make_shared<const worker::Arena>(std::move(*arena));
      bytes = open.arena->bytes();
    }
    const auto slot = slot_of(bytes, label, member);
    if (!slot) return broken("rank " + std::to_string(member) + " has none");
    open.content = slot->content;
    Result<Index> index = read_index(open.content);
    if (!index) return index.error();
    if (index->owner != owner_) return broken("it is another Snapshot's");
    open.files = std::move(index->files);
    if (!slots->empty() && open.files.size() != slots->front().files.size()) {
      return broken("ranks have different files");
    }
    slots->push_back(std::move(open));
  }
  std::vector<size_t> all(slots->size());
  std::iota(all.begin(), all.end(), 0);
  Loaded loaded;
  const OpenSlot& leader = slots->front();  // its value trees are used
  for (size_t i = 0; i + 1 < leader.files.size(); ++i) {
    loaded[leader.files[i].name] = {leader.files[i].value,
                                    std::make_shared<SlotStorages>(slots, all, i)};
  }
  const auto& mine = (*slots)[own].files;
  loaded[mine.back().name] = {
      mine.back().value, std::make_shared<SlotStorages>(slots, std::vector{own}, mine.size() - 1)};
  return loaded;
}

}  // namespace cpprun::snapshot

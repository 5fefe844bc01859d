#include "agent/daemon/snapshots/shards.hpp"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "snapshot_files/archive/crc32.hpp"

namespace cpprun {
namespace {

using snapshot_files::ArenaSlots;
using snapshot_files::Slot;

std::span<std::byte> bytes_of(const Mapping& mapping) {
  return {mapping.get(), mapping.get_deleter().bytes};
}

bool is_named(const Slot& slot, const ShardId& name) {
  return slot.is_complete && slot.label == name.label && slot.crc32 == name.crc32 &&
         slot.content.size() == name.bytes;
}

}  // namespace

std::vector<ShardId> shards_in(const Arenas& arenas) {
  std::vector<ShardId> all;
  for (const int index : arenas.local_ranks()) {
    const Result<Arenas::View> view = arenas.view(index);
    if (!view) continue;
    const Mapping mapping = map_aligned(view->bytes, PROT_READ, MAP_SHARED, view->descriptor.get());
    const size_t so_far = all.size();
    for (const Slot& slot : snapshot_files::slots_of(bytes_of(mapping))) {
      if (!slot.is_complete) continue;
      all.push_back({index, slot.label, slot.number, slot.crc32, slot.content.size()});
    }
    if (all.size() == so_far) return {};
  }
  return all;
}

Result<OpenShard> open_shard(const Arenas& arenas, const ShardId& name) {
  Result<Arenas::View> view = arenas.view(name.index);
  if (!view) return view.error();
  const Mapping mapping = map_aligned(view->bytes, PROT_READ, MAP_SHARED, view->descriptor.get());
  for (const Slot& slot : snapshot_files::slots_of(bytes_of(mapping))) {
    if (!is_named(slot, name)) continue;
    const auto from = static_cast<off_t>(slot.content.data() - mapping.get());
    if (::lseek(view->descriptor.get(), from, SEEK_SET) < 0) return system_error("lseek", errno);
    return OpenShard{std::move(view->descriptor), slot.content.size()};
  }
  return Error{ErrorKind::Refused, "it is not there any more"};
}

Result<ShardWriter> ShardWriter::make(Arenas& arenas, const ShardId& name) {
  const Result<Arenas::Piece> piece = arenas.want(name.index, ArenaSlots::arena_bytes(name.bytes));
  if (!piece) return piece.error();
  Mapping mapping =
      map_aligned(piece->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, piece->descriptor);
  if (!mapping) return system_error("mapping memory for a copy", errno);
  ShardWriter writer(std::move(mapping), name);
  Result<std::span<std::byte>> bytes = writer.slots_.begin(name.label, name.bytes);
  if (!bytes) return bytes.error();
  writer.bytes_ = *bytes;
  use_huge_pages(writer.bytes_);
  return writer;
}

ShardWriter::ShardWriter(Mapping mapping, const ShardId& name)
    : mapping_(std::move(mapping)), slots_(bytes_of(mapping_)), name_(name) {}

Status ShardWriter::check() {
  if (archive::crc32(bytes_) != name_.crc32) {
    return Error{ErrorKind::Protocol,
                 "the shard of rank " + std::to_string(name_.label.rank) + " has another checksum"};
  }
  slots_.staged(name_.crc32);
  return {};
}

void ShardWriter::complete() { slots_.complete(name_.label.step); }

}  // namespace cpprun

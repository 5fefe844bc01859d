// Shards in an agent's arenas, one arena per local rank: lists and reads complete shards, and
// writes another agent's shards (--snapshot-replicas).
//
// Workers reach their own arenas through agent/process/channel/arenas.hpp; replica_plan.hpp decides
// which shards are wanted. The worker SDK defines the format of a shard's bytes. Workers may write
// while a shard is read: it is intact only if its crc32 matches. Thread: any; each ShardWriter on
// one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agent/process/channel/arenas.hpp"
#include "common/machine/mapping.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun {

// The agent's own shards, and its replicas of a neighbour's shards.
struct ShardArenas {
  std::shared_ptr<Arenas> own;
  std::shared_ptr<Arenas> replicas;
};

// At most two per arena. Empty while an arena has none, since shards are useful only as a set: at
// the first save of a node, the arena of one rank may have its shard before that of another.
// Unreadable arenas are skipped.
std::vector<ShardId> shards_in(const Arenas& arenas);

struct OpenShard {
  UniqueFd file;  // its offset is the shard's first byte
  uint64_t bytes = 0;
};
// Error (Refused): a newer shard has replaced it.
Result<OpenShard> open_shard(const Arenas& arenas, const ShardId& name);

// Writes a shard into an arena. The shard becomes valid with complete(); until then the last
// complete shard of the arena stays valid.
class ShardWriter {
 public:
  // Error (Refused, System, BadValue): the arena has no room for it.
  static Result<ShardWriter> make(Arenas& arenas, const ShardId& name);
  ShardWriter(ShardWriter&&) noexcept = default;

  std::span<std::byte> bytes() const { return bytes_; }  // for the caller to fill
  // Verifies the filled bytes. Error (Protocol): wrong checksum.
  Status check();
  // Requires: check() has succeeded.
  void complete();

 private:
  ShardWriter(Mapping mapping, const ShardId& name);

  Mapping mapping_;
  snapshot_files::ArenaSlots slots_;
  ShardId name_;
  std::span<std::byte> bytes_;
};

}  // namespace cpprun

// Shards: what lies complete in an agent's arenas, one shard of a snapshot in memory for each local
// rank, and how another agent's shards get into them (--snapshot-replicas).
//
// Not the workers' way to their own arenas (agent/process/channel/arenas.hpp) and no decision which
// shards are wanted (replica_plan.hpp). A shard's bytes are the worker SDK's affair; here they are
// only carried. Workers write meanwhile, so what was read is whole only if its crc32 says so.
// Thread: any; a ShardWriter one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agent/process/channel/arenas.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/transfer/replica_protocol.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun {

// Where an agent's own shards lie, and the replicas that it keeps of a neighbour's.
struct ShardArenas {
  std::shared_ptr<Arenas> own;
  std::shared_ptr<Arenas> replicas;
};

// Of each arena at most two. What can't be read is left out.
std::vector<ShardId> shards_in(const Arenas& arenas);

struct OpenShard {
  UniqueFd file;  // stands at its first byte
  uint64_t bytes = 0;
};
// Error (Refused): it is not there any more.
Result<OpenShard> open_shard(const Arenas& arenas, const ShardId& name);

// A shard that comes into an arena. Until complete() is called it does not count, and the last
// complete one that lies beside it does.
class ShardWriter {
 public:
  // Error (Refused, System, BadValue): there is no room for it.
  static Result<ShardWriter> make(Arenas& arenas, const ShardId& name);
  ShardWriter(ShardWriter&&) noexcept = default;

  std::span<std::byte> bytes() const { return bytes_; }  // to be filled
  // All of it is there. Error (Protocol): it is not what was named.
  Status check();
  // Requires that check() has said so.
  void complete();

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* at) const;
  };
  using Mapping = std::unique_ptr<std::byte, Unmap>;
  ShardWriter(Mapping mapping, const ShardId& name);

  Mapping mapping_;
  snapshot_files::ArenaSlots slots_;
  ShardId name_;
  std::span<std::byte> bytes_;
};

}  // namespace cpprun

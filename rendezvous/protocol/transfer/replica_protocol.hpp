// What agents say to each other about shards in memory: a line, answered as a line about snapshots
// is (snapshot_protocol.hpp), then bytes. Pure; docs/protocol.md, "Snapshots between agents".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun {

// A complete shard as agents name it to each other.
struct ShardId {
  int index = 0;  // which of the arenas: the local rank at the node whose shard it is
  snapshot_files::SlotLabel label;
  uint64_t number = 0;  // grows with each save in this arena
  uint32_t crc32 = 0;   // of all its bytes
  uint64_t bytes = 0;
};

}  // namespace cpprun

namespace cpprun::replica_protocol {

// Whose shards: the agent's own, or the replicas that it keeps.
enum class ShardNamespace { Own, Replicas };

struct Request {
  std::string secret;  // the round's; never empty
  ShardNamespace shard_namespace = ShardNamespace::Own;
  std::optional<ShardId> shard{};  // nothing: the names of all
};

std::string encode(const Request& request);  // a line with its end
// A line without its end; it may be hostile. Error (Protocol): it is no such line.
Result<Request> decode_request(std::string_view line);

std::string encode(const std::vector<ShardId>& shards);
// The same text; it may be hostile. Error (Protocol): it is none.
Result<std::vector<ShardId>> decode_shards(std::string_view text);

}  // namespace cpprun::replica_protocol

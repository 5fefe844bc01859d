// Transfer of snapshots, and of shards in memory, between agents: a request line, a reply line,
// then bytes. Pure; docs/protocol.md, "Snapshots between agents".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun::snapshot_protocol {

inline constexpr size_t kLineBytes = 1024;  // newline included; longer lines are errors

struct Request {
  std::string secret;  // of the round; never empty
  control::SnapshotName snapshot;
  std::string file;  // manifest.json, or a file that it lists
};

struct Answer {
  enum class Kind {
    Bytes,   // `bytes` of the file follow
    Busy,    // too many transfers: retry
    Secret,  // unknown secret; the peer may not know the round yet: retry
    No,      // a retry cannot help
  };
  Kind kind = Kind::No;
  uint64_t bytes = 0;
  std::string why{};  // reason for people; on the wire only with No
};

// With the newline.
std::string encode(const Request& request);
std::string encode(const Answer& answer);

// `line` has no newline and may be hostile. Error (Protocol): it does not decode.
Result<Request> decode_request(std::string_view line);
Result<Answer> decode_answer(std::string_view line);

}  // namespace cpprun::snapshot_protocol

namespace cpprun {

// Identifies a complete shard between agents.
struct ShardId {
  int index = 0;  // of the arena: the local rank at the shard's own node
  snapshot_files::SlotLabel label;
  uint64_t number = 0;  // grows with each save in this arena
  uint32_t crc32 = 0;   // of all its bytes
  uint64_t bytes = 0;
};

}  // namespace cpprun

namespace cpprun::replica_protocol {

// The serving agent's own shards, or the replicas that it keeps.
enum class ShardNamespace { Own, Replicas };

struct Request {
  std::string secret;  // of the round; never empty
  ShardNamespace shard_namespace = ShardNamespace::Own;
  std::optional<ShardId> shard{};  // empty: list all shards
};

std::string encode(const Request& request);  // with the newline
// `line` has no newline and may be hostile. Error (Protocol): it is no request.
Result<Request> decode_request(std::string_view line);

std::string encode(const std::vector<ShardId>& shards);
// `text` may be hostile. Error (Protocol): it is no list of shards.
Result<std::vector<ShardId>> decode_shards(std::string_view text);

}  // namespace cpprun::replica_protocol

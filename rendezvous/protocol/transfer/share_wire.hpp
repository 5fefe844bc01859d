// What agents say to each other about shares in memory: a line, answered as a line about snapshots
// is (snapshot_wire.hpp), then bytes. Pure; docs/protocol.md, "Snapshots between agents".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun {

// A complete share as agents name it to each other.
struct ShareName {
  int index = 0;  // which of the arenas: the local rank at the node whose share it is
  snapshot_files::SlotLabel label;
  uint64_t number = 0;  // grows with each save in this arena
  uint32_t crc32 = 0;   // of all its bytes
  uint64_t bytes = 0;
};

}  // namespace cpprun

namespace cpprun::share_wire {

// Whose shares: the agent's own, or the copies that it keeps.
enum class Shelf { Own, Copies };

struct Request {
  std::string secret;  // the round's; never empty
  Shelf shelf = Shelf::Own;
  std::optional<ShareName> share{};  // nothing: the names of all
};

std::string encode(const Request& request);  // a line with its end
// A line without its end; it may be hostile. Error (Protocol): it is no such line.
Result<Request> decode_request(std::string_view line);

std::string encode(const std::vector<ShareName>& shares);
// The same text; it may be hostile. Error (Protocol): it is none.
Result<std::vector<ShareName>> decode_shares(std::string_view text);

}  // namespace cpprun::share_wire

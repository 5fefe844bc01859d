// What agents say to each other about shares in memory: a line, answered as a line about snapshots
// is (snapshot_wire.hpp), then bytes. Pure; docs/protocol.md, "Snapshots between agents".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/daemon/shares.hpp"
#include "common/result.hpp"

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

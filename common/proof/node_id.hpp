// The public id of a node, derived from the key that only its agent and the coordinator know.
//
// Other nodes learn the id (it names the standby coordinator of a round). An agent proves its id in
// its hello by sending the key; the id does not reveal the key. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/ids.hpp"

namespace cpprun {

Incarnation node_id_of(std::string_view key);

// The number of the first connection of the agent with this key; each later connection adds one.
// Between 0 and 2^62, and as hard to guess as the key.
int64_t first_connection_of(std::string_view key);

}  // namespace cpprun

// The public id of a node, made from the key that only its agent and the coordinator know.
//
// Other nodes hear the id (the standby of a round is named by it). Whoever says hello with an id
// shows the key that it is made from; from the id nobody finds that key. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/ids.hpp"

namespace cpprun {

Incarnation node_id_of(std::string_view key);

// The number of the first connection of the agent with this key; later ones count on from it.
// Between 0 and 2^62, and as hard to guess as the key.
int64_t first_connection_of(std::string_view key);

}  // namespace cpprun

// Control messages <-> MessagePack. Every field is checked: type, range, length; nesting is bounded
// before anything is built, since nlohmann's reader recurses.
//
// A message is an array [name, {field: value, ...}]. Unknown fields are ignored, missing ones keep
// their default, so a newer peer of the same protocol version may say more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::control {

std::vector<uint8_t> encode(const AgentMessage& message);
std::vector<uint8_t> encode(const CoordinatorMessage& message);

Result<AgentMessage> decode_agent(std::span<const uint8_t> bytes);
Result<CoordinatorMessage> decode_coordinator(std::span<const uint8_t> bytes);

}  // namespace cpprun::control

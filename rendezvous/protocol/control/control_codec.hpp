// Codec of the control messages: MessagePack. The decoder checks type, range and length of every
// field. It bounds the nesting before it builds anything, since nlohmann's reader recurses. A
// message is an array [name, {field: value, ...}]. The decoder ignores unknown fields, and missing
// ones keep their default, so a newer peer of the same protocol version may send more fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::control {

std::vector<uint8_t> encode(const AgentMessage& message);
std::vector<uint8_t> encode(const CoordinatorMessage& message);

Result<AgentMessage> decode_agent(std::span<const uint8_t> bytes);
Result<CoordinatorMessage> decode_coordinator(std::span<const uint8_t> bytes);

// The records of hosts as JSON, for --state-dir.
std::string host_records_json(const HostRecords& records);
Result<HostRecords> parse_host_records(std::string_view text);

}  // namespace cpprun::control

// Keys of the cluster's nodes, and ids made from them. A node's id is its number, so that traces
// are readable. The number determines the key; impostors do not use it.
#pragma once

#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "common/text.hpp"

namespace cpprun::sim {

inline constexpr std::string_view kKeyPrefix = "key of node ";

inline std::string key_of(Incarnation node) {
  return std::string(kKeyPrefix) + std::to_string(node.value);
}

// Like node_id_of() of common/proof. 0: no node has that key.
inline Incarnation id_of_key(std::string_view key) {
  if (!key.starts_with(kKeyPrefix)) return {};
  const auto number = text::parse_int(key.substr(kKeyPrefix.size()));
  return Incarnation(static_cast<uint64_t>(number.value_or(0)));
}

}  // namespace cpprun::sim

// --nnodes as users write it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace cpprun {

// Minimum and maximum of "N" or "MIN:MAX", with 1 <= MIN <= MAX.
std::optional<std::pair<int64_t, int64_t>> parse_node_range(std::string_view text);

}  // namespace cpprun

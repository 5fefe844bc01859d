// Names of dtypes, as torch spells them, and what is known of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cpprun::pickle {

// Bytes of an element of "float32", "bool", "float8_e5m2" ...; nothing for a name that is no dtype
// or none that can be stored.
std::optional<int64_t> size_of_dtype(std::string_view dtype);

}  // namespace cpprun::pickle

// Names of dtypes as torch spells them, and their sizes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cpprun::pickle {

// Bytes per element of "float32", "bool", "float8_e5m2" ...; nothing if the name is not a dtype or
// the dtype cannot be stored.
std::optional<int64_t> size_of_dtype(std::string_view dtype);

}  // namespace cpprun::pickle

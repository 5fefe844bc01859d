// Helpers for JSON. Templates, so that common does not depend on nlohmann_json. Pure.
#pragma once

#include <optional>
#include <string>

namespace cpprun {

// nlohmann's dump(), with bytes that are not UTF-8 replaced by U+FFFD: by default dump() throws,
// and names of files and hosts, or the output of workers, may contain any bytes. `indent` -1 gives
// one line. `is_ascii`: escapes all other characters.
template <class Json>
std::string dump_json(const Json& json, int indent = -1, bool is_ascii = false) {
  return json.dump(indent, ' ', is_ascii, Json::error_handler_t::replace);
}

template <class Json, class T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace cpprun

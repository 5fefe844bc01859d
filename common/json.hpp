// JSON from and to text. Templates, so that common does not depend on nlohmann_json. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cpprun {

// nlohmann's dump(), with bytes that are not UTF-8 replaced by U+FFFD: by default dump() throws,
// and names of files and hosts, or the output of workers, may contain any bytes. `indent` -1 gives
// one line. `is_ascii`: escapes all other characters.
template <class Json>
std::string dump_json(const Json& json, int indent = -1, bool is_ascii = false) {
  return json.dump(indent, ' ', is_ascii, Json::error_handler_t::replace);
}

// Untrusted JSON, nested at most `depth_max` deep, so that code that walks it recurses no deeper.
// Discarded value: no JSON, or nested more deeply.
template <class Json>
Json parse_json(std::string_view bytes, int depth_max) {
  bool is_too_deep = false;
  const auto look = [&](int depth, typename Json::parse_event_t, Json&) {
    is_too_deep = is_too_deep || depth > depth_max;
    return !is_too_deep;
  };
  Json json = Json::parse(bytes.begin(), bytes.end(), look, /*allow_exceptions=*/false);
  return is_too_deep ? Json(Json::value_t::discarded) : json;
}

template <class Json, class T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace cpprun

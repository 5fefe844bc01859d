// JSON from and to text. Templates, so that common does not depend on nlohmann_json. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cpprun {

// JSON in UTF-8, as nlohmann writes it, with DEL, the second set of control characters and those
// that change the direction of text as \uXXXX: people look at JSON with a terminal too.
std::string with_escaped_controls(std::string json);

// nlohmann's dump(), with bytes that are not UTF-8 replaced by U+FFFD: by default dump() throws,
// and names of files and hosts, or the output of workers, may contain any bytes. `indent` -1 gives
// one line. `is_ascii`: escapes all other characters.
// Control characters that nlohmann would leave (text::has_control) are escaped.
template <class Json>
std::string dump_json(const Json& json, int indent = -1, bool is_ascii = false) {
  return with_escaped_controls(json.dump(indent, ' ', is_ascii, Json::error_handler_t::replace));
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

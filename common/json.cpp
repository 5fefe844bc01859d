#include "common/json.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "common/text.hpp"

namespace cpprun {
namespace {

std::string escaped(std::string_view character) {
  constexpr std::array<uint32_t, 4> kFirstBits{0x7F, 0x1F, 0x0F, 0x07};
  uint32_t number = static_cast<uint8_t>(character[0]) & kFirstBits[character.size() - 1];
  for (const char c : character.substr(1)) number = number << 6 | (static_cast<uint8_t>(c) & 0x3F);
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", number & 0xFFFF);
  return text.data();
}

}  // namespace

std::string with_escaped_controls(std::string json) {
  const auto is_plain = [](char c) { return static_cast<uint8_t>(c) < 0x7F; };
  if (std::ranges::all_of(json, is_plain)) return json;
  std::string out;
  out.reserve(json.size());
  for (std::string_view rest = json; !rest.empty();) {
    const std::string_view character = text::first_character(rest);
    // Outside of texts the layout has new lines; within them nlohmann has escaped these.
    const bool is_escaped =
        !(character.size() == 1 && is_plain(character.front())) && text::has_control(character);
    out += is_escaped ? escaped(character) : std::string(character);
    rest.remove_prefix(character.size());
  }
  return out;
}

}  // namespace cpprun

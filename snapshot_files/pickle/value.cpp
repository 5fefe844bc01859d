#include "snapshot_files/pickle/value.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace cpprun::pickle {
namespace {

// The number of bytes after the first one of a UTF-8 character; nothing if `first` begins none.
std::optional<size_t> followers(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first < 0xE0) return 1;
  if (first >= 0xE0 && first < 0xF0) return 2;
  if (first >= 0xF0 && first < 0xF5) return 3;
  return std::nullopt;
}

// Whether `second` may follow `first`: excludes overlong forms, surrogates and code points beyond
// Unicode.
bool fits_behind(unsigned char first, unsigned char second) {
  const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return second >= least && second <= most;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto more = followers(byte(0));
    if (!more || text.size() <= *more) return false;
    if (*more > 0 && !fits_behind(byte(0), byte(1))) return false;
    for (size_t i = 2; i <= *more; ++i) {
      if ((byte(i) & 0xC0) != 0x80) return false;
    }
    text.remove_prefix(*more + 1);
  }
  return true;
}

}  // namespace

// Not defaulted: clang 14 crashes on defaulted comparisons that depend on each other.
bool List::operator==(const List& other) const { return items == other.items; }
bool Tuple::operator==(const Tuple& other) const { return items == other.items; }
bool Dict::operator==(const Dict& other) const { return pairs == other.pairs; }
bool Value::operator==(const Value& other) const { return held_ == other.held_; }

const Value* Dict::find(std::string_view key) const {
  const auto found = std::ranges::find_if(pairs, [key](const auto& pair) {
    const auto* name = pair.first.template get_if<std::string>();
    return name != nullptr && *name == key;
  });
  return found == pairs.end() ? nullptr : &found->second;
}

const Value* Value::find(std::string_view key) const {
  const auto* dict = get_if<Dict>();
  return dict == nullptr ? nullptr : dict->find(key);
}

const Values* Value::items() const {
  if (const auto* list = get_if<List>()) return &list->items;
  const auto* tuple = get_if<Tuple>();
  return tuple == nullptr ? nullptr : &tuple->items;
}

Value text_or_bytes(std::string bytes) {
  if (is_utf8(bytes)) return bytes;
  return Bytes{std::move(bytes)};
}

const char* kind_name(const Value& value) {
  static constexpr std::array kNames{"None",  "bool", "int",   "float",   "str",    "bytes", "list",
                                     "tuple", "dict", "dtype", "complex", "tensor", "int"};
  static_assert(kNames.size() == std::variant_size_v<Value::Held>);
  return kNames[value.held().index()];
}

}  // namespace cpprun::pickle

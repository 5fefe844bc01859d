#include "cpprun/pickle/value.hpp"

#include <algorithm>
#include <array>

namespace cpprun::pickle {

// Written out: clang 14 crashes on defaulted comparisons that need each other.
bool List::operator==(const List& other) const {
  return items == other.items;
}
bool Tuple::operator==(const Tuple& other) const {
  return items == other.items;
}
bool Dict::operator==(const Dict& other) const {
  return pairs == other.pairs;
}
bool Value::operator==(const Value& other) const {
  return held_ == other.held_;
}

const Value* Dict::find(std::string_view key) const {
  const auto found = std::find_if(pairs.begin(), pairs.end(), [key](const auto& pair) {
    const auto* name = pair.first.template get_if<std::string>();
    return name != nullptr && *name == key;
  });
  return found == pairs.end() ? nullptr : &found->second;
}

const char* kind_name(const Value& value) {
  static constexpr std::array kNames{"None", "bool",  "int",  "float", "str",     "bytes",
                                     "list", "tuple", "dict", "dtype", "complex", "tensor"};
  static_assert(kNames.size() == std::variant_size_v<Value::Held>);
  return kNames[value.held().index()];
}

}  // namespace cpprun::pickle

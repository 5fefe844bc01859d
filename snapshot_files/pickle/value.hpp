// Value: the contents of a pickle of torch.save as a plain tree. No LibTorch: a tensor is only a
// description of bytes that are stored elsewhere.
//
// Dictionaries keep their order. Attributes that Python sets on one (`_metadata` of a state_dict)
// are omitted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace cpprun::pickle {

// Whether T is one of the alternatives of a variant.
template <class T, class Variant>
inline constexpr bool kIsAlternative = false;
template <class T, class... Ts>
inline constexpr bool kIsAlternative<T, std::variant<Ts...>> = (std::is_same_v<T, Ts> || ...);

class Value;
using Values = std::vector<Value>;
using Pairs = std::vector<std::pair<Value, Value>>;

struct None {
  bool operator==(const None&) const = default;
};
struct Bytes {
  std::string bytes;
  bool operator==(const Bytes&) const = default;
};
struct List {
  Values items;
  bool operator==(const List&) const;
};
struct Tuple {
  Values items;
  bool operator==(const Tuple&) const;
};
struct Dict {
  Pairs pairs;
  // The value of a text key, or null.
  const Value* find(std::string_view key) const;
  template <class T>
  const T* find_as(std::string_view key) const;  // null also for a value of another type
  bool operator==(const Dict&) const;
};
// A dtype ("float32"): torch.float32 in Python.
struct Dtype {
  std::string name;
  bool operator==(const Dtype&) const = default;
};
struct Complex {
  double real = 0, imaginary = 0;
  bool operator==(const Complex&) const = default;
};
// A view of a storage: its elements at `offset` (in elements) plus the strides' steps.
struct TensorRef {
  std::string storage;  // name of the record with the bytes
  std::string dtype;    // "float32", "bfloat16", "complex64", "bool" ...
  int64_t storage_numel = 0;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  bool requires_grad = false;
  bool is_conjugate = false, is_negative = false;  // torch's lazy views: apply to what is stored
  bool operator==(const TensorRef&) const = default;
};

// An integer that int64_t does not hold: two's complement, little endian, more than 8 bytes, as few
// as possible.
struct BigInt {
  std::string bytes;
  bool operator==(const BigInt&) const = default;
};

class Value {
 public:
  using Held = std::variant<None, bool, int64_t, double, std::string, Bytes, List, Tuple, Dict,
                            Dtype, Complex, TensorRef, BigInt>;

  Value() = default;
  template <class T, class = std::enable_if_t<kIsAlternative<T, Held>>>
  Value(T held) : held_(std::in_place_type<T>, std::move(held)) {}  // NOLINT: implicit on purpose
  Value(const char* text) : held_(std::string(text)) {}             // NOLINT

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&held_);
  }
  template <class T>
  T* get_if() {
    return std::get_if<T>(&held_);
  }
  const Held& held() const { return held_; }
  // The value of a text key of a dict, or null.
  const Value* find(std::string_view key) const;
  template <class T>
  const T* find_as(std::string_view key) const {
    const Value* found = find(key);
    return found == nullptr ? nullptr : found->get_if<T>();
  }
  // The items of a list or tuple, or null.
  const Values* items() const;
  bool operator==(const Value&) const;

 private:
  Held held_;
};

template <class T>
const T* Dict::find_as(std::string_view key) const {
  const Value* found = find(key);
  return found == nullptr ? nullptr : found->get_if<T>();
}

// Pointers to the items of a list or tuple; nothing if there are more or fewer, or a type differs.
template <class... T>
std::optional<std::tuple<const T*...>> unpack(const Value& value) {
  const Values* items = value.items();
  if (items == nullptr || items->size() != sizeof...(T)) return std::nullopt;
  return [&]<size_t... kItem>(std::index_sequence<kItem...>) {
    const std::tuple<const T*...> fields{(*items)[kItem].template get_if<T>()...};
    const bool is_whole = ((std::get<kItem>(fields) != nullptr) && ...);
    return is_whole ? std::optional(fields) : std::nullopt;
  }
  (std::index_sequence_for<T...>());
}

// A text if `bytes` are valid UTF-8, else Bytes.
Value text_or_bytes(std::string bytes);

// "int", "dict" ...; for error messages.
const char* kind_name(const Value& value);

}  // namespace cpprun::pickle

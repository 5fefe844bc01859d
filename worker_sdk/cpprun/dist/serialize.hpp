/// @file
/// Converts objects to bytes and back, for objects.hpp and for programs that store objects.
///
///     std::string bytes = dist::serialize(std::map<std::string, double>{{"auc", 0.97}});
///     auto scores = dist::deserialize<std::map<std::string, double>>(bytes);
///
/// Serializable types: numbers, bool, std::string, std::vector, std::array, std::map,
/// std::optional, std::pair, std::tuple, at::Tensor, JSON-like types (`dump()` and a static
/// `parse()`), and user types with `std::string to_bytes(const T&)` and `void
/// from_bytes(std::string_view, T&)` found by argument-dependent lookup. The bytes hold values
/// only; compare types by type_tag. Any thread.
#pragma once

#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/bytes.hpp"

namespace cpprun::dist {

/// Has `static constexpr std::string_view kSerialName = "shop::Order/2";`: its name and version.
/// For other classes the name is the compiler's spelling, which is the same in g++ and clang++
/// unless the class is a template.
template <class T>
concept NamesItself = requires {
  { T::kSerialName } -> std::convertible_to<std::string_view>;
};

namespace detail {

// g++: "... [with T = shop::Order; ...]", clang++: "... [T = shop::Order]".
template <class T>
constexpr std::string_view spelled_name() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const size_t begin = text.find("T = ") + 4;
  return text.substr(begin, text.find_first_of(";]", begin) - begin);
}

template <class T>
constexpr std::string_view class_name() {
  if constexpr (NamesItself<T>) {
    return T::kSerialName;
  } else {
    return spelled_name<T>();
  }
}

// "i32", "u64", "f64": kind and bits, so that `long` and `long long` of one size are equal.
template <class T>
std::string number_tag() {
  const char* kind = "f";
  if constexpr (std::integral<T>) kind = std::signed_integral<T> ? "i" : "u";
  return kind + std::to_string(sizeof(T) * 8);
}

}  // namespace detail

/// Writes and reads one type and names it: `static std::string tag()`, `static void
/// write(ByteWriter&, const T&)` and `static T read(ByteReader&)`. Specialise it for types that the
/// list above lacks. A value must take at least one byte, so that the reader can check a length
/// against the bytes left.
template <class T>
struct Codec;

/// A type that has a Codec.
template <class T>
concept Serializable = requires(const T& value, ByteWriter& to, ByteReader& from) {
  { Codec<T>::tag() } -> std::convertible_to<std::string>;
  Codec<T>::write(to, value);
  { Codec<T>::read(from) } -> std::same_as<T>;
};

/// User types: `to_bytes` and `from_bytes` in the namespace of the class.
template <class T>
concept HasBytes = std::is_class_v<T> && std::default_initializable<T> &&
    requires(const T& value, T& to) {
  { to_bytes(value) } -> std::convertible_to<std::string>;
  from_bytes(std::string_view{}, to);
};

/// nlohmann::json and similar types.
template <class T>
concept JsonLike =
    std::is_class_v<T> && !HasBytes<T> && requires(const T& value, const std::string& text) {
  { value.dump() } -> std::convertible_to<std::string>;
  { T::parse(text) } -> std::convertible_to<T>;
};

/// The name of a type, equal on all ranks: "i32", "list<str>", "map<str,f64>", "tensor", "json",
/// "bytes<shop::Order>".
template <Serializable T>
std::string type_tag() {
  return Codec<T>::tag();
}

/// The bytes of `value`, without its type.
template <Serializable T>
std::string serialize(const T& value) {
  ByteWriter to;
  Codec<T>::write(to, value);
  return to.take();
}

/// Throws DistMismatchError unless `bytes` are exactly one T.
template <Serializable T>
T deserialize(std::string_view bytes) {
  ByteReader from(bytes);
  T value = Codec<T>::read(from);
  from.end();
  return value;
}

/// @cond
template <class T>
requires std::is_arithmetic_v<T>
struct Codec<T> {
  static std::string tag() { return detail::number_tag<T>(); }
  static void write(ByteWriter& to, T value) { to.number(value); }
  static T read(ByteReader& from) { return from.number<T>(); }
};

template <>
struct Codec<bool> {
  static std::string tag() { return "bool"; }
  static void write(ByteWriter& to, bool value) { to.number<uint8_t>(value ? 1 : 0); }
  static bool read(ByteReader& from) {
    const auto value = from.number<uint8_t>();
    if (value > 1) from.bad("a bool is " + std::to_string(value));
    return value == 1;
  }
};

template <>
struct Codec<std::string> {
  static std::string tag() { return "str"; }
  static void write(ByteWriter& to, const std::string& value) { to.text(value); }
  static std::string read(ByteReader& from) { return std::string(from.text()); }
};

/// @endcond
/// Tensors: keeps sizes, dtype, values and requires_grad, not strides. A CUDA tensor is restored on
/// the reader's own GPU (`dist::local_device()`), others on the CPU. DistUnsupportedError for
/// sparse and quantised tensors.
template <>
struct Codec<at::Tensor> {
  /// @{
  /// As Codec describes them.
  static std::string tag() { return "tensor"; }
  static void write(ByteWriter& to, const at::Tensor& value);
  static at::Tensor read(ByteReader& from);
  /// @}
};

/// @cond
template <Serializable T>
struct Codec<std::vector<T>> {
  static constexpr bool kIsPlain = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

  static std::string tag() { return "list<" + Codec<T>::tag() + ">"; }
  static void write(ByteWriter& to, const std::vector<T>& value) {
    to.number<uint64_t>(value.size());
    if constexpr (kIsPlain) {
      to.raw(value.data(), value.size() * sizeof(T));
    } else {
      for (const T& item : value) Codec<T>::write(to, item);
    }
  }
  static std::vector<T> read(ByteReader& from) {
    std::vector<T> value;
    const auto count = from.count(kIsPlain ? sizeof(T) : 1);
    if constexpr (kIsPlain) {
      value.resize(count);
      const auto bytes = from.raw(count * sizeof(T));
      if (count > 0) std::memcpy(value.data(), bytes.data(), bytes.size());
    } else {
      for (uint64_t i = 0; i < count; ++i) value.push_back(Codec<T>::read(from));
    }
    return value;
  }
};

template <Serializable T, size_t N>
requires(N > 0 && std::default_initializable<T>) struct Codec<std::array<T, N>> {
  static std::string tag() { return "array<" + Codec<T>::tag() + "," + std::to_string(N) + ">"; }
  static void write(ByteWriter& to, const std::array<T, N>& value) {
    for (const T& item : value) Codec<T>::write(to, item);
  }
  static std::array<T, N> read(ByteReader& from) {
    std::array<T, N> value{};
    for (T& item : value) item = Codec<T>::read(from);
    return value;
  }
};

template <Serializable K, Serializable V>
struct Codec<std::map<K, V>> {
  static std::string tag() { return "map<" + Codec<K>::tag() + "," + Codec<V>::tag() + ">"; }
  static void write(ByteWriter& to, const std::map<K, V>& value) {
    to.number<uint64_t>(value.size());
    for (const auto& [key, item] : value) {
      Codec<K>::write(to, key);
      Codec<V>::write(to, item);
    }
  }
  static std::map<K, V> read(ByteReader& from) {
    std::map<K, V> value;
    for (auto left = from.count(2); left > 0; --left) {
      K key = Codec<K>::read(from);
      if (!value.emplace(std::move(key), Codec<V>::read(from)).second) from.bad("a key is twice");
    }
    return value;
  }
};

template <Serializable T>
struct Codec<std::optional<T>> {
  static std::string tag() { return "optional<" + Codec<T>::tag() + ">"; }
  static void write(ByteWriter& to, const std::optional<T>& value) {
    Codec<bool>::write(to, value.has_value());
    if (value) Codec<T>::write(to, *value);
  }
  static std::optional<T> read(ByteReader& from) {
    if (!Codec<bool>::read(from)) return {};
    return Codec<T>::read(from);
  }
};

template <Serializable A, Serializable B>
struct Codec<std::pair<A, B>> {
  static std::string tag() { return "pair<" + Codec<A>::tag() + "," + Codec<B>::tag() + ">"; }
  static void write(ByteWriter& to, const std::pair<A, B>& value) {
    Codec<A>::write(to, value.first);
    Codec<B>::write(to, value.second);
  }
  static std::pair<A, B> read(ByteReader& from) {
    A first = Codec<A>::read(from);
    return {std::move(first), Codec<B>::read(from)};
  }
};

template <Serializable T, Serializable... More>
struct Codec<std::tuple<T, More...>> {
  static std::string tag() {
    return "tuple<" + (Codec<T>::tag() + ... + ("," + Codec<More>::tag())) + ">";
  }
  static void write(ByteWriter& to, const std::tuple<T, More...>& value) {
    std::apply(
        [&to](const T& item, const More&... more) {
          Codec<T>::write(to, item);
          (Codec<More>::write(to, more), ...);
        },
        value);
  }
  static std::tuple<T, More...> read(ByteReader& from) {
    // Braces evaluate the elements from left to right.
    return std::tuple<T, More...>{Codec<T>::read(from), Codec<More>::read(from)...};
  }
};

template <JsonLike T>
struct Codec<T> {
  static std::string tag() { return "json"; }
  static void write(ByteWriter& to, const T& value) { to.text(value.dump()); }
  static T read(ByteReader& from) {
    const std::string text(from.text());
    try {
      return T::parse(text);
    } catch (const std::exception& error) {
      from.bad(std::string("JSON that does not parse: ") + error.what() + ",");
    }
  }
};

template <HasBytes T>
struct Codec<T> {
  static std::string tag() { return "bytes<" + std::string(detail::class_name<T>()) + ">"; }
  static void write(ByteWriter& to, const T& value) { to.text(to_bytes(value)); }
  static T read(ByteReader& from) {
    T value{};
    const auto bytes = from.text();
    try {
      from_bytes(bytes, value);
    } catch (const std::exception& error) {
      from.bad("from_bytes of " + std::string(detail::class_name<T>()) + " says: " + error.what() +
               ",");
    }
    return value;
  }
};
/// @endcond

}  // namespace cpprun::dist

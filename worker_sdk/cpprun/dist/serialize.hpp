/// @file
/// Converts C++ values to Python's pickle and back, for objects.hpp and for programs that store
/// objects: pickle.loads() reads what serialize() writes, and deserialize() what pickle.dumps()
/// writes.
///
///     std::string bytes = dist::serialize(std::map<std::string, double>{{"auc", 0.97}});
///     auto scores = dist::deserialize<std::map<std::string, double>>(bytes);
///
/// | C++ | Python |
/// | --- | --- |
/// | integers, `bool` | int, bool |
/// | `float`, `double` | float; an int is read too |
/// | `std::string` | str, or bytes unless it is UTF-8; both are read |
/// | `std::vector`, `std::array` | list; a tuple is read too |
/// | `std::pair`, `std::tuple` | tuple; a list is read too |
/// | `std::map` | dict |
/// | `std::optional`, `std::monostate` | None or the value, None |
/// | `at::Tensor` | tensor; undefined: None |
/// | JSON-like types (`dump()` and a static `parse()`) | None, bool, int, float, str, list, dict |
/// | user types with `to_bytes` and `from_bytes` beside them | bytes |
/// | Object (object.hpp) | all of these |
///
/// Errors: DistMismatchError for bytes that are not such an object; it names Python's type. Any
/// thread.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/object.hpp"

namespace cpprun::dist {

/// Converts one type to and from Object. Specialise it for types that the table above lacks:
/// `static Object to_object(const T&)` and `static T from_object(const Object&)`.
template <class T>
struct Codec;

/// A type that has a Codec.
template <class T>
concept Serializable = requires(const T& value, const Object& object) {
  { Codec<T>::to_object(value) } -> std::same_as<Object>;
  { Codec<T>::from_object(object) } -> std::same_as<T>;
};

/// User types: `std::string to_bytes(const T&)` and `void from_bytes(std::string_view, T&)` in the
/// namespace of the class.
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

namespace detail {

/// Throws DistMismatchError: "wanted is a list, it is a str".
[[noreturn]] void mismatch(const char* wanted, const Object& object);
[[noreturn]] void refuse_object(const std::string& why);

/// Of int64_t, or of a BigInt that uint64_t holds; else nothing.
std::optional<int64_t> int_of(const Object& object);
std::optional<uint64_t> large_int_of(const Object& object);
[[noreturn]] void does_not_fit(const Object& object, size_t bits, bool is_signed);

/// The items of a list or tuple; with `count`, of so many.
const std::vector<Object>& items_of(const Object& object, const char* wanted);
const std::vector<Object>& items_of(const Object& object, const char* wanted, size_t count);

/// A key of a dict: lists become tuples, since Python's lists are no keys.
Object as_key(Object key);

Object from_json(const std::string& text);
std::string to_json(const Object& object);

}  // namespace detail

/// The value as Python's pickle.dumps() has it.
template <Serializable T>
std::string serialize(const T& value) {
  return dumps(Codec<T>::to_object(value));
}

/// Reads what serialize() or Python's pickle.dumps() wrote.
/// @throws DistMismatchError unless `bytes` are exactly one T.
template <Serializable T>
T deserialize(std::string_view bytes) {
  return Codec<T>::from_object(loads(bytes));
}

/// All types of Object as they are.
template <>
struct Codec<Object> {
  static Object to_object(const Object& value) { return value; }      ///< The object itself.
  static Object from_object(const Object& object) { return object; }  ///< The object itself.
};

/// None.
template <>
struct Codec<std::monostate> {
  static Object to_object(const std::monostate&) { return None{}; }  ///< None.
  static std::monostate from_object(const Object& object) {          ///< Of None only.
    if (object.get_if<None>() == nullptr) detail::mismatch("None", object);
    return {};
  }
};

/// Integers of all widths, and floating point.
template <class T>
requires std::is_arithmetic_v<T>
struct Codec<T> {
  /// An int or a float.
  static Object to_object(T value) {
    if constexpr (std::floating_point<T>) {
      return static_cast<double>(value);
    } else {
      return value;
    }
  }
  /// Of an int that T holds; a floating point T also of a float.
  static T from_object(const Object& object) {
    if constexpr (std::floating_point<T>) {
      if (const auto* number = object.get_if<double>()) return static_cast<T>(*number);
    }
    const auto number = detail::int_of(object);
    if (std::floating_point<T>) {
      if (number) return static_cast<T>(*number);
      detail::mismatch("a float", object);
    }
    if constexpr (std::integral<T>) {
      if (number && *number >= 0 && static_cast<uint64_t>(*number) <= kMax) {
        return static_cast<T>(*number);
      }
      if (std::is_signed_v<T> && number && *number < 0 &&
          *number >= static_cast<int64_t>(std::numeric_limits<T>::min())) {
        return static_cast<T>(*number);
      }
      const auto large = detail::large_int_of(object);
      if (large && *large <= kMax) return static_cast<T>(*large);
    }
    detail::does_not_fit(object, sizeof(T) * 8, std::is_signed_v<T>);
  }

 private:
  static constexpr uint64_t kMax =
      std::integral<T> ? static_cast<uint64_t>(std::numeric_limits<T>::max()) : 0;
};

/// bool.
template <>
struct Codec<bool> {
  static Object to_object(bool value) { return value; }  ///< A bool.
  static bool from_object(const Object& object) {        ///< Of a bool only.
    const auto* value = object.get_if<bool>();
    if (value == nullptr) detail::mismatch("a bool", object);
    return *value;
  }
};

/// str and bytes.
template <>
struct Codec<std::string> {
  /// A str; bytes unless the text is valid UTF-8.
  static Object to_object(const std::string& value) { return value; }
  /// Of a str or bytes.
  static std::string from_object(const Object& object) {
    if (const auto* bytes = object.get_if<Bytes>()) return bytes->bytes;
    const auto* text = object.get_if<std::string>();
    if (text == nullptr) detail::mismatch("a str", object);
    return *text;
  }
};

/// Tensors keep sizes, dtype, values and requires_grad, not strides.
template <>
struct Codec<at::Tensor> {
  static Object to_object(const at::Tensor& value) { return value; }  ///< A tensor.
  /// Of a tensor, or None for an undefined one.
  static at::Tensor from_object(const Object& object) {
    if (object.get_if<None>() != nullptr) return {};
    const auto* tensor = object.get_if<at::Tensor>();
    if (tensor == nullptr) detail::mismatch("a Tensor", object);
    return *tensor;
  }
};

/// list.
template <Serializable T>
struct Codec<std::vector<T>> {
  /// A list.
  static Object to_object(const std::vector<T>& value) {
    List made;
    for (const T& item : value) made.items.push_back(Codec<T>::to_object(item));
    return made;
  }
  /// Of a list or tuple.
  static std::vector<T> from_object(const Object& object) {
    std::vector<T> value;
    for (const Object& item : detail::items_of(object, "a list")) {
      value.push_back(Codec<T>::from_object(item));
    }
    return value;
  }
};

/// list of N items.
template <Serializable T, size_t N>
requires(N > 0 && std::default_initializable<T>) struct Codec<std::array<T, N>> {
  /// A list.
  static Object to_object(const std::array<T, N>& value) {
    List made;
    for (const T& item : value) made.items.push_back(Codec<T>::to_object(item));
    return made;
  }
  /// Of a list or tuple of N items.
  static std::array<T, N> from_object(const Object& object) {
    std::array<T, N> value{};
    const auto& items = detail::items_of(object, "a list", N);
    for (size_t i = 0; i < N; ++i) value[i] = Codec<T>::from_object(items[i]);
    return value;
  }
};

/// dict.
template <Serializable K, Serializable V>
struct Codec<std::map<K, V>> {
  /// A dict in the map's order.
  static Object to_object(const std::map<K, V>& value) {
    Dict made;
    for (const auto& [key, item] : value) {
      made.pairs.emplace_back(detail::as_key(Codec<K>::to_object(key)), Codec<V>::to_object(item));
    }
    return made;
  }
  /// Of a dict.
  static std::map<K, V> from_object(const Object& object) {
    const auto* dict = object.get_if<Dict>();
    if (dict == nullptr) detail::mismatch("a dict", object);
    std::map<K, V> value;
    for (const auto& [key, item] : dict->pairs) {
      if (!value.emplace(Codec<K>::from_object(key), Codec<V>::from_object(item)).second) {
        detail::refuse_object("a key is twice in a dict");
      }
    }
    return value;
  }
};

/// None or a value.
template <Serializable T>
struct Codec<std::optional<T>> {
  /// None without a value.
  static Object to_object(const std::optional<T>& value) {
    return value ? Codec<T>::to_object(*value) : Object();
  }
  /// Without a value for None.
  static std::optional<T> from_object(const Object& object) {
    if (object.get_if<None>() != nullptr) return {};
    return Codec<T>::from_object(object);
  }
};

/// tuple of two.
template <Serializable A, Serializable B>
struct Codec<std::pair<A, B>> {
  /// A tuple.
  static Object to_object(const std::pair<A, B>& value) {
    return Tuple{{Codec<A>::to_object(value.first), Codec<B>::to_object(value.second)}};
  }
  /// Of a tuple or list of two.
  static std::pair<A, B> from_object(const Object& object) {
    const auto& items = detail::items_of(object, "a tuple", 2);
    return {Codec<A>::from_object(items[0]), Codec<B>::from_object(items[1])};
  }
};

/// tuple.
template <Serializable T, Serializable... More>
struct Codec<std::tuple<T, More...>> {
  /// A tuple.
  static Object to_object(const std::tuple<T, More...>& value) {
    return std::apply(
        [](const T& item, const More&... more) -> Object {
          return Tuple{{Codec<T>::to_object(item), Codec<More>::to_object(more)...}};
        },
        value);
  }
  /// Of a tuple or list with as many items.
  static std::tuple<T, More...> from_object(const Object& object) {
    const auto& items = detail::items_of(object, "a tuple", 1 + sizeof...(More));
    return [&items]<size_t... kMore>(std::index_sequence<kMore...>) {
      return std::tuple<T, More...>{Codec<T>::from_object(items[0]),
                                    Codec<More>::from_object(items[kMore + 1])...};
    }
    (std::index_sequence_for<More...>());
  }
};

/// What JSON can express.
template <JsonLike T>
struct Codec<T> {
  static Object to_object(const T& value) { return detail::from_json(value.dump()); }  ///< Any.
  static T from_object(const Object& object) {  ///< Of an object that JSON can express.
    return T::parse(detail::to_json(object));
  }
};

/// bytes of a user type.
template <HasBytes T>
struct Codec<T> {
  static Object to_object(const T& value) { return Bytes{to_bytes(value)}; }  ///< bytes.
  /// Of bytes that from_bytes() accepts.
  static T from_object(const Object& object) {
    const auto* bytes = object.get_if<Bytes>();
    if (bytes == nullptr) detail::mismatch("bytes", object);
    T value{};
    try {
      from_bytes(std::string_view(bytes->bytes), value);
    } catch (const std::exception& error) {
      detail::refuse_object(std::string("from_bytes says: ") + error.what());
    }
    return value;
  }
};

}  // namespace cpprun::dist

/// @file
/// Object: a Python object of the types that C++ knows, as the object collectives carry it, and
/// its conversion to and from Python's pickle.
///
///     dist::Object config = dist::loads(bytes);   // pickle.loads, runs no code
///     if (const auto* rate = config.find_as<double>("lr")) ...
///
/// Programs that know the type at compile time use serialize.hpp or objects.hpp directly. Any
/// thread; an object is a value.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/errors.hpp"

namespace cpprun::dist {

class Object;

/// Python's None.
struct None {
  bool operator==(const None&) const = default;  ///< Always true.
};

/// An int that int64_t does not hold.
struct BigInt {
  /// Two's complement, little endian, more than 8 bytes and as few as possible: Python's
  /// int.to_bytes(n, "little", signed=True).
  std::string bytes;
  bool operator==(const BigInt&) const = default;  ///< Compares the numbers.
};

/// Python's bytes, and bytearray when it is received.
struct Bytes {
  std::string bytes;                              ///< Any bytes.
  bool operator==(const Bytes&) const = default;  ///< Compares the bytes.
};

/// Python's list.
struct List {
  std::vector<Object> items;  ///< In order.
};

/// Python's tuple.
struct Tuple {
  std::vector<Object> items;  ///< In order.
};

/// Python's dict; also an OrderedDict or a Counter when it is received.
struct Dict {
  std::vector<std::pair<Object, Object>> pairs;  ///< Keys and values in the dict's order.
};

namespace detail {

/// Whether T is one of a variant's types. Unlike a test by construction it needs no complete types.
template <class T, class Variant>
inline constexpr bool kIsAlternative = false;
template <class T, class... Types>
inline constexpr bool kIsAlternative<T, std::variant<Types...>> = (std::same_as<T, Types> || ...);

}  // namespace detail

/// A Python object: None, bool, int, float, complex, str, bytes, list, tuple, dict, torch.dtype or
/// tensor. Not for sets and classes: loads() refuses them and names them.
class Object {
 public:
  /// The types that an object can have.
  using Held = std::variant<None, bool, int64_t, BigInt, double, std::complex<double>, std::string,
                            Bytes, List, Tuple, Dict, at::ScalarType, at::Tensor>;

  /// None.
  Object() = default;
  /// One of the types of Held.
  template <class T>
  requires detail::kIsAlternative<T, Held> Object(T held)  // NOLINT: implicit on purpose
      : held_(std::in_place_type<T>, std::move(held)) {}
  /// An int of any width.
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, int64_t>) Object(T number)  // NOLINT
      : held_(of_number(number)) {}
  /// A str.
  Object(const char* text) : held_(std::string(text)) {}  // NOLINT

  /// The content if the object has this type, else null.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&held_);
  }
  /// The content as a variant.
  const Held& held() const { return held_; }
  /// Python's name of the type: "NoneType", "int", "str", "dict", "Tensor" ...
  const char* type_name() const;
  /// The items of a list or tuple, or null.
  const std::vector<Object>* items() const;
  /// The value of a str key of a dict, or null.
  const Object* find(std::string_view key) const;
  /// The value of a str key of a dict if it has this type, or null.
  template <class T>
  const T* find_as(std::string_view key) const {
    const Object* found = find(key);
    return found == nullptr ? nullptr : found->get_if<T>();
  }

 private:
  template <class T>
  static Held of_number(T number) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) >= sizeof(int64_t)) {
      if (number > static_cast<uint64_t>(INT64_MAX)) return of_large_number(number);
    }
    return static_cast<int64_t>(number);
  }
  static Held of_large_number(uint64_t number);

  Held held_;
};

/// Python's pickle.dumps(object), which pickle.loads() reads.
/// @throws DistUnsupportedError for a tensor that is not dense or not of numbers.
std::string dumps(const Object& object);

/// Python's pickle.loads(bytes) for the types of Object; runs no code of the pickle. A CUDA tensor
/// is restored on this rank's own GPU (`local_device()`), others on the CPU.
/// @throws DistMismatchError for malformed bytes, and for types that C++ does not know: it names
/// the type.
Object loads(std::string_view bytes);

}  // namespace cpprun::dist

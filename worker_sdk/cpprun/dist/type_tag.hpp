// Names of types that are equal on every rank, whatever compiler built its program.
//
// `type_tag<T>()` is in serialize.hpp; this header names classes of the user. A class may define
// its name and version in kSerialName; otherwise the compiler's spelling is used, which is the same
// in g++ and clang++ for classes that are not templates.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace cpprun::dist {

// Has `static constexpr std::string_view kSerialName = "shop::Order/2";`.
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
}  // namespace cpprun::dist

// Names of types that mean the same on every rank, whatever compiler built its program.
//
// `type_tag<T>()` is part of serialize.hpp; here is what it takes for types that users bring: a
// class may say its own name and version, and without that its spelled name is used, which g++ and
// clang++ agree on for classes that are no templates.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace cpprun::dist {

// `static constexpr std::string_view kSerialName = "shop::Order/2";`
template <class T>
concept NamesItself = requires {
  { T::kSerialName } -> std::convertible_to<std::string_view>;
};

namespace detail {

// "... [with T = shop::Order; ...]" of g++ and "... [T = shop::Order]" of clang++.
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

// "i32", "u64", "f64": kind and bits, so that `long` and `long long` of one size are one type.
template <class T>
std::string number_tag() {
  const char* kind = "f";
  if constexpr (std::integral<T>) kind = std::signed_integral<T> ? "i" : "u";
  return kind + std::to_string(sizeof(T) * 8);
}

}  // namespace detail
}  // namespace cpprun::dist

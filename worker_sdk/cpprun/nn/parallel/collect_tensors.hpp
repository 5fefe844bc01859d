/// @file
/// Visits the tensors in a module's inputs and outputs. Python counterpart: torch.utils._pytree.
///
/// Known types: at::Tensor, std::optional, pair, tuple, array, vector and other containers, and
/// maps (their values), nested to any depth. A struct of your own needs a function in its
/// namespace:
///
///     struct Boxes { at::Tensor corners, scores; };
///     template <class Visit>
///     void visit_tensors(Boxes& boxes, Visit&& visit) {
///       visit(boxes.corners);
///       visit(boxes.scores);
///     }
///
/// Needed only for `find_unused_parameters`, `static_graph` and `device_ids`.
#pragma once

#include <concepts>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>

#include <ATen/core/Tensor.h>

namespace cpprun::nn::parallel {

namespace detail {

struct IgnoreAll {
  template <class T>
  void operator()(T&) const {}
};
template <class T>
concept IsTensor = std::same_as<std::remove_cv_t<T>, at::Tensor>;
template <class T>
concept HasOwnVisit = requires(T& value, IgnoreAll visit) {
  visit_tensors(value, visit);
};
template <class T>
concept IsTuple = requires {
  std::tuple_size<std::remove_cv_t<T>>::value;
};
template <class T>
concept IsMap = requires(T& value) {
  typename T::mapped_type;
  value.begin()->second;
};
template <class T>
concept IsOptional = requires(T& value) {
  { value.has_value() } -> std::same_as<bool>;
  *value;
};
template <class T>
concept IsList =
    std::ranges::range<T> && std::is_lvalue_reference_v<std::ranges::range_reference_t<T>> &&
    !std::same_as<std::remove_cv_t<T>, std::string> &&
    !std::is_array_v<T>;

}  // namespace detail

/// A class without a known way to visit it: its tensors are not found.
template <class T>
inline constexpr bool kIsOpaque =
    std::is_class_v<T> && !detail::IsTensor<T> && !detail::HasOwnVisit<T> && !detail::IsTuple<T> &&
    !detail::IsMap<T> && !detail::IsOptional<T> && !detail::IsList<T> &&
    !std::same_as<std::remove_cv_t<T>, std::string>;

/// Calls `visit(at::Tensor&)` for each defined tensor in `value`, in order.
template <class T, class Visit>
void for_each_tensor(T& value, Visit&& visit) {
  const auto deeper = [&visit](auto& inner) { for_each_tensor(inner, visit); };
  if constexpr (detail::IsTensor<T>) {
    if (value.defined()) visit(value);
  } else if constexpr (detail::HasOwnVisit<T>) {
    visit_tensors(value, deeper);
  } else if constexpr (detail::IsTuple<T>) {
    std::apply([&](auto&... inner) { (deeper(inner), ...); }, value);
  } else if constexpr (detail::IsMap<T>) {
    for (auto& [key, inner] : value) deeper(inner);
  } else if constexpr (detail::IsOptional<T>) {
    if (value.has_value()) deeper(*value);
  } else if constexpr (detail::IsList<T>) {
    if constexpr (std::is_class_v<std::ranges::range_value_t<T>>) {
      for (auto& inner : value) deeper(inner);
    }
  }
}

}  // namespace cpprun::nn::parallel

// The templates of objects.hpp: serialize, and call the functions on bytes.
#pragma once

#include "cpprun/dist/objects.hpp"

namespace cpprun::dist {
namespace detail {

template <class T>
std::vector<std::string> serialize_all(const std::vector<T>& list) {
  std::vector<std::string> all;
  for (const T& object : list) all.push_back(serialize<T>(object));
  return all;
}

template <class T>
std::vector<T> deserialize_all(const std::vector<std::string>& list) {
  std::vector<T> all;
  for (const std::string& bytes : list) all.push_back(deserialize<T>(bytes));
  return all;
}

}  // namespace detail

template <Serializable T>
std::vector<T> all_gather_object(const T& object, const ProcessGroup& group) {
  return detail::deserialize_all<T>(all_gather_bytes(serialize<T>(object), type_tag<T>(), group));
}

template <Serializable T>
std::vector<T> gather_object(const T& object, int dst, const ProcessGroup& group) {
  return detail::deserialize_all<T>(gather_bytes(serialize<T>(object), type_tag<T>(), dst, group));
}

template <Serializable T>
void broadcast_object_list(std::vector<T>& list, int src, const ProcessGroup& group) {
  // Only `src` sends; the other ranks pass the number of objects that they expect.
  const bool is_source = get_rank() == src;
  auto bytes = is_source ? detail::serialize_all<T>(list) : std::vector<std::string>(list.size());
  broadcast_bytes(bytes, type_tag<T>(), src, group);
  if (!is_source) list = detail::deserialize_all<T>(bytes);
}

template <Serializable T>
T scatter_object_list(const std::vector<T>& list, int src, const ProcessGroup& group) {
  const auto bytes =
      get_rank() == src ? detail::serialize_all<T>(list) : std::vector<std::string>{};
  return deserialize<T>(scatter_bytes(bytes, type_tag<T>(), src, group));
}

}  // namespace cpprun::dist

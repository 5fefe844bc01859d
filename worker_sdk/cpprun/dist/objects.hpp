/// @file
/// Collectives of serializable objects. Python counterpart: torch.distributed.all_gather_object,
/// gather_object, broadcast_object_list, scatter_object_list, send_object_list and
/// recv_object_list, without pickle.
///
///     auto all = dist::all_gather_object(json{{"rank", dist::get_rank()}});   // by rank
///
/// Objects: numbers, bool, std::string, std::vector, std::array, std::map, std::optional,
/// std::pair, std::tuple, at::Tensor, nlohmann::json (any type with dump() and a static parse()),
/// and user types with to_bytes and from_bytes; see serialize.hpp.
///
/// All calls block. The ranks always compare call, type, list length and root first; a difference
/// is a DistMismatchError on all of them that names two ranks. Received bytes that are not such an
/// object are a DistMismatchError too. Other errors and threads: as in collectives.hpp. All ranks
/// must use this SDK: Python's wire format is another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/dist/serialize.hpp"

namespace cpprun::dist {

/// @{
/// The object collectives below on serialized bytes. The ranks compare `type`; type_tag() makes it.
/// gather_bytes() returns an empty list except on `dst`; recv_bytes() returns the sender's global
/// rank.
std::vector<std::string> all_gather_bytes(const std::string& bytes, std::string_view type,
                                          const ProcessGroup& group = {});
std::vector<std::string> gather_bytes(const std::string& bytes, std::string_view type, int dst,
                                      const ProcessGroup& group = {});  ///< empty except on dst
void broadcast_bytes(std::vector<std::string>& list, std::string_view type, int src,
                     const ProcessGroup& group = {});
std::string scatter_bytes(const std::vector<std::string>& list, std::string_view type, int src,
                          const ProcessGroup& group = {});
void send_bytes(const std::vector<std::string>& list, std::string_view type, int dst,
                const ProcessGroup& group = {});
int recv_bytes(std::vector<std::string>& list, std::string_view type, int src,
               const ProcessGroup& group = {});

namespace detail {

template <class T>
std::vector<std::string> serialize_all(const std::vector<T>& list) {
  std::vector<std::string> all;
  for (const T& object : list) all.push_back(serialize<T>(object));
  return all;
}
/// @}

template <class T>
std::vector<T> deserialize_all(const std::vector<std::string>& list) {
  std::vector<T> all;
  for (const std::string& bytes : list) all.push_back(deserialize<T>(bytes));
  return all;
}

}  // namespace detail

/// Returns the objects of all ranks, in the order of the group's ranks, on all ranks.
template <Serializable T>
std::vector<T> all_gather_object(const T& object, const ProcessGroup& group = {}) {
  return detail::deserialize_all<T>(all_gather_bytes(serialize<T>(object), type_tag<T>(), group));
}

/// The same on `dst` (a global rank) only; other ranks get an empty list.
template <Serializable T>
std::vector<T> gather_object(const T& object, int dst = 0, const ProcessGroup& group = {}) {
  return detail::deserialize_all<T>(gather_bytes(serialize<T>(object), type_tag<T>(), dst, group));
}

/// Replaces `list` with the list of `src` (a global rank). All ranks pass a list of the same
/// length.
template <Serializable T>
void broadcast_object_list(std::vector<T>& list, int src = 0, const ProcessGroup& group = {}) {
  // Only `src` sends; the other ranks pass the number of objects that they expect.
  const bool is_source = get_rank() == src;
  auto bytes = is_source ? detail::serialize_all<T>(list) : std::vector<std::string>(list.size());
  broadcast_bytes(bytes, type_tag<T>(), src, group);
  if (!is_source) list = detail::deserialize_all<T>(bytes);
}

/// Sends list[r] of `src` (a global rank) to rank r and returns this rank's object. Only the list
/// of `src` is used; it has one object per rank of the group.
template <Serializable T>
T scatter_object_list(const std::vector<T>& list, int src = 0, const ProcessGroup& group = {}) {
  const auto bytes =
      get_rank() == src ? detail::serialize_all<T>(list) : std::vector<std::string>{};
  return deserialize<T>(scatter_bytes(bytes, type_tag<T>(), src, group));
}

/// Sends the objects to `dst` (a global rank), which calls recv_object_list with a list of the same
/// length and type; its errors name a difference. Blocks until the backend has taken them.
template <Serializable T>
void send_object_list(const std::vector<T>& list, int dst, const ProcessGroup& group = {}) {
  send_bytes(detail::serialize_all<T>(list), type_tag<T>(), dst, group);
}

/// Replaces `list` by the list of `src`; -1: of any rank (gloo only). Returns the sender's global
/// rank.
template <Serializable T>
int recv_object_list(std::vector<T>& list, int src = -1, const ProcessGroup& group = {}) {
  std::vector<std::string> bytes(list.size());
  const int sender = recv_bytes(bytes, type_tag<T>(), src, group);
  list = detail::deserialize_all<T>(bytes);
  return sender;
}

}  // namespace cpprun::dist

/// @file
/// Collectives of serializable objects, on the wire of Python's:
/// torch.distributed.all_gather_object, gather_object, broadcast_object_list, scatter_object_list,
/// send_object_list, recv_object_list. Ranks of C++ and of Python can take part in one call.
///
///     auto all = dist::all_gather_object(json{{"rank", dist::get_rank()}});   // by rank
///     auto any = dist::all_gather_object(dist::Object(dist::None{}));         // of any type
///
/// Objects: the types that serialize.hpp lists. With Object as the type, a list may have objects of
/// different types. As in Python, a tensor travels through the CPU.
///
/// All calls block. Received objects that are not of the wanted type, or of one that C++ does not
/// know, are a DistMismatchError on the rank that receives, which names the sender and the type;
/// the group stays usable. As in Python, the ranks compare call, root and list length with debug
/// checks only. Other errors and threads: as in collectives.hpp.
#pragma once

#include <string>
#include <vector>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/dist/serialize.hpp"

namespace cpprun::dist {

/// @{
/// The object collectives below on the bytes of a pickle. gather_bytes() returns an empty list
/// except on `dst`; recv_bytes() returns the sender's global rank.
std::vector<std::string> all_gather_bytes(const std::string& bytes, const ProcessGroup& group = {});
std::vector<std::string> gather_bytes(const std::string& bytes, int dst,
                                      const ProcessGroup& group = {});
void broadcast_bytes(std::vector<std::string>& list, int src, const ProcessGroup& group = {});
std::string scatter_bytes(const std::vector<std::string>& list, int src,
                          const ProcessGroup& group = {});
void send_bytes(const std::vector<std::string>& list, int dst, const ProcessGroup& group = {});
int recv_bytes(std::vector<std::string>& list, int src, const ProcessGroup& group = {});
/// @}

namespace detail {

template <class T>
std::vector<std::string> serialize_all(const std::vector<T>& list) {
  std::vector<std::string> all;
  for (const T& object : list) all.push_back(serialize<T>(object));
  return all;
}

/// Throws `error` again with the call and the sender in front.
[[noreturn]] void from_rank(const char* call, int rank, const DistMismatchError& error);

template <class T>
T deserialize_from(const char* call, int rank, const std::string& bytes) {
  try {
    return deserialize<T>(bytes);
  } catch (const DistMismatchError& error) {
    from_rank(call, rank, error);
  }
}

template <class T>
std::vector<T> deserialize_all(const char* call, int rank, const std::vector<std::string>& list) {
  std::vector<T> all;
  for (const std::string& bytes : list) all.push_back(deserialize_from<T>(call, rank, bytes));
  return all;
}

/// One object per rank of the group.
template <class T>
std::vector<T> deserialize_of_ranks(const char* call, const ProcessGroup& group,
                                    const std::vector<std::string>& list) {
  std::vector<T> all;
  for (size_t i = 0; i < list.size(); ++i) {
    const int rank = get_global_rank(group, static_cast<int>(i));
    all.push_back(deserialize_from<T>(call, rank, list[i]));
  }
  return all;
}

}  // namespace detail

/// Returns the objects of all ranks, in the order of the group's ranks, on all ranks.
template <Serializable T>
std::vector<T> all_gather_object(const T& object, const ProcessGroup& group = {}) {
  return detail::deserialize_of_ranks<T>("all_gather_object", group,
                                         all_gather_bytes(serialize<T>(object), group));
}

/// The same on `dst` (a global rank) only; other ranks get an empty list.
template <Serializable T>
std::vector<T> gather_object(const T& object, int dst = 0, const ProcessGroup& group = {}) {
  return detail::deserialize_of_ranks<T>("gather_object", group,
                                         gather_bytes(serialize<T>(object), dst, group));
}

/// Replaces `list` with the list of `src` (a global rank). All ranks pass a list of the same
/// length.
template <Serializable T>
void broadcast_object_list(std::vector<T>& list, int src = 0, const ProcessGroup& group = {}) {
  // Only `src` sends; the other ranks pass the number of objects that they expect.
  const bool is_source = get_rank() == src;
  auto bytes = is_source ? detail::serialize_all<T>(list) : std::vector<std::string>(list.size());
  broadcast_bytes(bytes, src, group);
  if (!is_source) list = detail::deserialize_all<T>("broadcast_object_list", src, bytes);
}

/// Sends list[r] of `src` (a global rank) to rank r and returns this rank's object. Only the list
/// of `src` is used; it has one object per rank of the group.
template <Serializable T>
T scatter_object_list(const std::vector<T>& list, int src = 0, const ProcessGroup& group = {}) {
  const auto bytes =
      get_rank() == src ? detail::serialize_all<T>(list) : std::vector<std::string>{};
  return detail::deserialize_from<T>("scatter_object_list", src, scatter_bytes(bytes, src, group));
}

/// Sends the objects to `dst` (a global rank), which calls recv_object_list with a list of the same
/// length. Blocks until the backend has taken them.
template <Serializable T>
void send_object_list(const std::vector<T>& list, int dst, const ProcessGroup& group = {}) {
  send_bytes(detail::serialize_all<T>(list), dst, group);
}

/// Replaces `list` by the list of `src`; -1: of any rank (gloo only). Returns the sender's global
/// rank.
template <Serializable T>
int recv_object_list(std::vector<T>& list, int src = -1, const ProcessGroup& group = {}) {
  std::vector<std::string> bytes(list.size());
  const int sender = recv_bytes(bytes, src, group);
  list = detail::deserialize_all<T>("recv_object_list", sender, bytes);
  return sender;
}

}  // namespace cpprun::dist

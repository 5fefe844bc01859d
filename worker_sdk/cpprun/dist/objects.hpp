// Collectives of objects: anything that `serialize` knows. Python counterpart: all_gather_object
// and its kin, without pickle.
//
//   auto all = dist::all_gather_object(json{{"rank", dist::get_rank()}});   // by rank
//
// Objects: numbers, bool, std::string, std::vector, std::array, std::map, std::optional, std::pair,
// std::tuple, at::Tensor, nlohmann::json (any type with dump() and a static parse()), and user
// types with to_bytes and from_bytes; see serialize.hpp. All calls block. Ranks always compare
// call, type, list length and root first: a difference is a DistMismatchError on all of them that
// names two ranks, never garbage. What arrives is not trusted: bytes that are no such object are a
// DistMismatchError too. Other errors: as in collectives.hpp. The group must be of this SDK's
// ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/dist/serialize.hpp"

namespace cpprun::dist {

// The same calls on bytes; `type` is compared across ranks.
std::vector<std::string> all_gather_bytes(const std::string& bytes, std::string_view type,
                                          const ProcessGroup& group = {});
std::vector<std::string> gather_bytes(const std::string& bytes, std::string_view type, int dst,
                                      const ProcessGroup& group = {});  // empty except on dst
void broadcast_bytes(std::vector<std::string>& list, std::string_view type, int src,
                     const ProcessGroup& group = {});
std::string scatter_bytes(const std::vector<std::string>& list, std::string_view type, int src,
                          const ProcessGroup& group = {});

// One object of each rank, in the order of the group's ranks, on all.
template <Serializable T>
std::vector<T> all_gather_object(const T& object, const ProcessGroup& group = {});
// The same on `dst` (a global rank); empty elsewhere.
template <Serializable T>
std::vector<T> gather_object(const T& object, int dst = 0, const ProcessGroup& group = {});
// All ranks bring a list of the same length; afterwards it is that of `src`.
template <Serializable T>
void broadcast_object_list(std::vector<T>& list, int src = 0, const ProcessGroup& group = {});
// `list` counts on `src` and has one object per rank of the group; each rank gets its own.
template <Serializable T>
T scatter_object_list(const std::vector<T>& list, int src = 0, const ProcessGroup& group = {});

}  // namespace cpprun::dist

#include "cpprun/dist/objects_impl.hpp"

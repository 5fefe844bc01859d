// Collectives of objects: anything that `serialize` knows. Python counterpart: all_gather_object
// and its kin, without pickle.
//
//   auto all = dist::all_gather_object(json{{"rank", dist::get_rank()}});   // in the order of
//   ranks
//
// Objects: numbers, bool, std::string, std::vector, std::array, std::map, std::optional, std::pair,
// std::tuple, at::Tensor (travels via the CPU, arrives on the caller's device), nlohmann::json (any
// type with dump() and a static parse()), and user types with `to_bytes(const T&) -> std::string`
// and `from_bytes(std::string_view, T&)` found by argument-dependent look-up. A count, type or
// version that differs between ranks is a DistMismatchError naming both, never garbage.
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

// One object of each rank, in the order of ranks, on all.
template <class T>
std::vector<T> all_gather_object(const T& object, const ProcessGroup& group = {});
// The same on `dst` (a global rank); empty elsewhere.
template <class T>
std::vector<T> gather_object(const T& object, int dst = 0, const ProcessGroup& group = {});
// All ranks bring a list of the same length; afterwards it is that of `src`.
template <class T>
void broadcast_object_list(std::vector<T>& list, int src = 0, const ProcessGroup& group = {});
// `list` counts on `src` and has one object per rank of the group; each rank gets its own.
template <class T>
T scatter_object_list(const std::vector<T>& list, int src = 0, const ProcessGroup& group = {});

}  // namespace cpprun::dist

#include "cpprun/dist/objects_impl.hpp"

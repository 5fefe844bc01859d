// ObjectHeader: what the ranks compare before they send objects: call, type, root, count, length.
// Private to dist.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpprun/dist/collectives/call.hpp"

namespace cpprun::dist {

inline constexpr size_t kObjectHeaderBytes = 256;
// Limit on the length that a peer may announce.
inline constexpr uint64_t kObjectBytesMax = uint64_t{16} << 30;

struct ObjectHeader {
  std::string call;   // "all_gather_object"
  std::string type;   // a type tag, cut if too long; then `hash` decides
  uint64_t hash = 0;  // of the whole type tag
  int64_t root = -1;  // global rank, -1: none
  uint64_t count = 0;
  uint64_t bytes = 0;

  std::string packed() const;                             // kObjectHeaderBytes long
  static ObjectHeader unpacked(std::string_view packed);  // DistMismatchError
};

ObjectHeader object_header(const Call& call, std::string_view type, int64_t root, uint64_t count,
                           uint64_t bytes);

// Throws DistMismatchError unless all ranks have the same call, type, version and root, and, with
// `counts_matter`, the same count. `packed`: one header per rank, in the order of `ranks`.
std::vector<ObjectHeader> agreed(const std::string& where, const std::vector<int>& ranks,
                                 const std::vector<std::string>& packed, bool counts_matter);

}  // namespace cpprun::dist

// The function of libcpprun_copy.so, which Python programs load for the copy of a save
// (cpprun_worker/_snapshot/stream_copy.py).
#include <cstddef>
#include <cstdint>

#include "snapshot_files/archive/fold_crc32.hpp"
#include "snapshot_files/archive/stream_copy.hpp"

namespace archive = cpprun::archive;

namespace {

int64_t copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes >= archive::kFoldFrom && archive::can_copy_and_fold_crc32(to)) {
    return archive::copy_and_fold_crc32(to, {from, bytes});
  }
  archive::stream_copy(to, from, bytes);
  return -1;
}

}  // namespace

// Copies `bytes[i]` bytes from `from[i]` to `to[i]`, large ranges past the caches, for each i below
// `count`. The ranges must not overlap. Sets `crc32s[i]` to their crc32, or to -1 if this processor
// does not compute it at the cost of the copy.
extern "C" __attribute__((visibility("default"))) void cpprun_copy_ranges(
    uint64_t count, std::byte* const* to, const std::byte* const* from, const uint64_t* bytes,
    int64_t* crc32s) {
  for (uint64_t i = 0; i < count; ++i) crc32s[i] = copy(to[i], from[i], bytes[i]);
}

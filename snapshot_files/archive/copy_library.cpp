// The function of libcpprun_copy.so, which Python programs load for the copy of a save
// (cpprun_worker/_snapshot/stream_copy.py).
#include <cstddef>
#include <cstdint>

#include "snapshot_files/archive/fold_crc32.hpp"
#include "snapshot_files/archive/stream_copy.hpp"

namespace archive = cpprun::archive;

// Copies `bytes` bytes from `from` to `to`, large ranges past the caches. The ranges must not
// overlap. Returns their crc32; -1 if this processor does not compute it at the cost of the copy.
extern "C" __attribute__((visibility("default"))) int64_t cpprun_copy(void* to, const void* from,
                                                                      uint64_t bytes) {
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  if (bytes >= archive::kFoldFrom && archive::can_copy_and_fold_crc32(target)) {
    return archive::copy_and_fold_crc32(target, {source, bytes});
  }
  archive::stream_copy(target, source, bytes);
  return -1;
}

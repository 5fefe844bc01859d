// stream_copy: memcpy for data that is larger than the caches and not read again soon, such as a
// staged snapshot. Calls no function of another library than libc, since libcpprun_copy.so has it.
#pragma once

#include <cstddef>

namespace cpprun::archive {

constexpr size_t kCacheLine = 64;
constexpr size_t kStreamFrom = 256 << 10;  // bytes; smaller copies should stay in the caches

// Copies `bytes` bytes, bypassing the caches where that is possible and faster. The ranges must not
// overlap. Visibility to other threads is as with memcpy.
void stream_copy(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace cpprun::archive

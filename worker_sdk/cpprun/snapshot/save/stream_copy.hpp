// stream_copy: memcpy for what is larger than the caches and not read soon, as a staged snapshot
// is. Private to snapshot.
#pragma once

#include <cstddef>

namespace cpprun::snapshot {

// Copies `bytes` bytes, past the caches where the processor can and it pays. The two don't overlap.
// Other threads see the copy as they would see memcpy's.
void stream_copy(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace cpprun::snapshot

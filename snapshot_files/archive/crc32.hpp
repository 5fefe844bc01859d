// The crc32 of zip files (and of zlib, Ethernet, PNG): reflected, polynomial 0xEDB88320. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "snapshot_files/archive/bytes.hpp"

namespace cpprun::archive {

// The crc32 of data with the crc32 `before` (0: empty) followed by `bytes`.
uint32_t crc32(ConstBytes bytes, uint32_t before = 0);

// Data that is read and then checked is read in parts of so many bytes, which fit the cache.
inline constexpr size_t kCheckedPartBytes = 4 << 20;

// The crc32 of `bytes` bytes of a source from `offset` on, which it reads in parts.
Result<uint32_t> crc32_of(const Source& source, uint64_t offset, uint64_t bytes);

// Copies `bytes` to `to` and returns their crc32 at the cost of the copy alone; large copies bypass
// the cache. Returns nothing and copies nothing if the processor lacks AVX-512 with VPCLMULQDQ, or
// `to` is not aligned to 64.
std::optional<uint32_t> copy_crc32(std::byte* to, ConstBytes bytes);

// The crc32 of two consecutive ranges, from the crc32 of each, without reading them.
uint32_t crc32_combine(uint32_t first, uint32_t second, uint64_t second_bytes);

// The format of manifests and fault plans: eight hexadecimal digits.
std::string crc32_text(uint32_t crc32);

}  // namespace cpprun::archive

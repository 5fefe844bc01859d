// The crc32 of zip files (and of zlib, Ethernet, PNG): reflected, polynomial 0xEDB88320. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "snapshot_files/archive/bytes.hpp"

namespace cpprun::archive {

// Of `bytes`, as a continuation of what had `before` (0: nothing).
uint32_t crc32(ConstBytes bytes, uint32_t before = 0);

// Copies `bytes` to `to`, many of them past the caches, and returns their crc32, which costs no
// more than the copy alone. Nothing: it did neither, as this processor can't (it takes AVX-512 with
// VPCLMULQDQ), or `to` is no multiple of 64.
std::optional<uint32_t> copy_crc32(std::byte* to, ConstBytes bytes);

// Of two stretches, one after the other, from the crc32 of each: no second pass over their bytes.
uint32_t crc32_combine(uint32_t first, uint32_t second, uint64_t second_bytes);

// As manifests and fault plans write it: eight hexadecimal digits.
std::string crc32_text(uint32_t crc32);

}  // namespace cpprun::archive

// The crc32 of zip files (and of zlib, Ethernet, PNG): reflected, polynomial 0xEDB88320. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "cpprun/archive/bytes.hpp"

namespace cpprun::archive {

// Of `bytes`, as a continuation of what had `before` (0: nothing).
uint32_t crc32(ConstBytes bytes, uint32_t before = 0);

// Of two stretches, one after the other, from the crc32 of each: no second pass over their bytes.
uint32_t crc32_combine(uint32_t first, uint32_t second, uint64_t second_bytes);

// As manifests and fault plans write it: eight hexadecimal digits.
std::string crc32_text(uint32_t crc32);

}  // namespace cpprun::archive

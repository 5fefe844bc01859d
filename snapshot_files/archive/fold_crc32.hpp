// The crc32 by carry-less products of 512 bits, alone or while copying. Pure. Calls no function of
// another library than libc, since libcpprun_copy.so has it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "snapshot_files/archive/bytes.hpp"

namespace cpprun::archive {

constexpr size_t kFoldFrom = 4 << 10;  // bytes; for fewer, the setup costs more than it gains

// Whether this processor has AVX-512 with VPCLMULQDQ.
bool can_fold_crc32();

// The crc32 of data with the crc32 `before` followed by `bytes`. Requires: can_fold_crc32(), at
// least kFoldFrom bytes.
uint32_t fold_crc32(ConstBytes bytes, uint32_t before);

// Whether this processor can fold what it copies to `to`: streaming stores need whole cache lines.
bool can_copy_and_fold_crc32(const std::byte* to);

// Copies `bytes` to `to`, from kStreamFrom bytes on past the caches, and returns their crc32, at
// the cost of the copy alone. Requires: can_copy_and_fold_crc32(to), at least kFoldFrom bytes.
uint32_t copy_and_fold_crc32(std::byte* to, ConstBytes bytes);

}  // namespace cpprun::archive

#include "snapshot_files/archive/crc32.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "snapshot_files/archive/crc32_polynomial.hpp"
#include "snapshot_files/archive/fold_crc32.hpp"

namespace cpprun::archive {
namespace {

// Factors that append 2^i bytes of zeros.
constexpr std::array<uint32_t, 64> kZeroOperators = [] {
  std::array<uint32_t, 64> powers{kCrcByte};
  for (size_t i = 1; i < powers.size(); ++i) {
    powers[i] = multiply_modulo_crc(powers[i - 1], powers[i - 1]);
  }
  return powers;
}();

}  // namespace

uint32_t crc32(ConstBytes bytes, uint32_t before) {
  if (bytes.empty()) return before;  // libdeflate resets the crc if the address is null
  if (bytes.size() >= kFoldFrom && can_fold_crc32()) return fold_crc32(bytes, before);
  return libdeflate_crc32(before, bytes.data(), bytes.size());
}

Result<uint32_t> crc32_of(const Source& source, uint64_t offset, uint64_t bytes) {
  std::vector<std::byte> part(static_cast<size_t>(std::min(bytes, uint64_t{kCheckedPartBytes})));
  uint32_t crc = 0;
  for (uint64_t done = 0; done < bytes; done += part.size()) {
    part.resize(static_cast<size_t>(std::min(bytes - done, uint64_t{kCheckedPartBytes})));
    if (Status read = source.read_at(offset + done, part); !read) return read.error();
    crc = crc32(part, crc);
  }
  return crc;
}

std::optional<uint32_t> copy_crc32(std::byte* to, ConstBytes bytes) {
  if (!can_copy_and_fold_crc32(to)) return std::nullopt;
  if (bytes.size() >= kFoldFrom) return copy_and_fold_crc32(to, bytes);
  std::copy(bytes.begin(), bytes.end(), to);
  return crc32(bytes);
}

uint32_t crc32_combine(uint32_t first, uint32_t second, uint64_t second_bytes) {
  for (size_t i = 0; second_bytes != 0; ++i, second_bytes >>= 1) {
    if ((second_bytes & 1) != 0) first = multiply_modulo_crc(kZeroOperators[i], first);
  }
  return first ^ second;
}

std::string crc32_text(uint32_t crc32) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc32);
  return text;
}

}  // namespace cpprun::archive

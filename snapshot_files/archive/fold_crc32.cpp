#include "snapshot_files/archive/fold_crc32.hpp"

#include <cstring>

#include "snapshot_files/archive/crc32_polynomial.hpp"
#include "snapshot_files/archive/stream_copy.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cpprun::archive {

#if defined(__x86_64__)

namespace {

constexpr int kStride = 256;  // bytes folded per iteration, in four registers

// x^n as the carry-less product of reflected operands needs it: shifted left by one.
constexpr uint64_t fold_by(int n) {
  uint32_t power = kCrcOne;
  for (int i = 0; i < n; ++i) power = multiply_modulo_crc(power, kCrcX);
  return uint64_t{power} << 1;
}
constexpr auto kFoldLow = static_cast<int64_t>(fold_by(8 * kStride + 32));
constexpr auto kFoldHigh = static_cast<int64_t>(fold_by(8 * kStride - 32));

struct ByteTable {
  uint32_t of[256];
};
constexpr ByteTable kByteTable = [] {
  ByteTable table{};
  for (uint32_t i = 0; i < 256; ++i) table.of[i] = multiply_modulo_crc(i, kCrcByte);
  return table;
}();

// Appends bytes to an inverted crc32, one by one.
uint32_t appended(uint32_t state, const std::byte* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    state = kByteTable.of[(state ^ static_cast<uint8_t>(bytes[i])) & 0xFF] ^ (state >> 8);
  }
  return state;
}

// Bypasses the cache: an ordinary store would read the line before it overwrites it.
__attribute__((target("avx512f"))) inline void stream(std::byte* to, __m512i line) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line);
}

// Folds 256 bytes into the next 256 until 256 are left, which a table reduces. Takes 42 ms per GiB,
// the time of reading the memory; libdeflate 1.14 with its 128-bit products takes 75 to 97 (EPYC
// 9004). With kCopies it also stores everything at `to` past the cache: the copy is limited by
// memory bandwidth, so the crc32 costs nothing more.
template <bool kCopies>
__attribute__((target("avx512f,vpclmulqdq"))) uint32_t folded(ConstBytes bytes, uint32_t before,
                                                              std::byte* to) {
  const __m512i by = _mm512_set4_epi64(kFoldHigh, kFoldLow, kFoldHigh, kFoldLow);
  const std::byte* at = bytes.data();
  __m512i sums[4];
  for (size_t i = 0; i < 4; ++i) {
    sums[i] = _mm512_loadu_si512(at + kCacheLine * i);
    if constexpr (kCopies) stream(to + kCacheLine * i, sums[i]);
  }
  const auto state = static_cast<int>(~before);
  sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(state)));
  const std::byte* const end = at + bytes.size() / kStride * kStride;
  for (at += kStride; at != end; at += kStride) {
    for (size_t i = 0; i < 4; ++i) {
      const __m512i low = _mm512_clmulepi64_epi128(sums[i], by, 0x00);
      const __m512i high = _mm512_clmulepi64_epi128(sums[i], by, 0x11);
      const __m512i next = _mm512_loadu_si512(at + kCacheLine * i);
      if constexpr (kCopies) stream(to + (at - bytes.data()) + kCacheLine * i, next);
      sums[i] = _mm512_ternarylogic_epi64(low, high, next, 0x96);  // exclusive or of the three
    }
  }
  std::byte left[kStride];
  std::memcpy(left, sums, kStride);
  const uint32_t reduced = appended(0, left, kStride);  // `before` is part of the sums already
  const size_t rest = bytes.size() % kStride;
  if constexpr (kCopies) {
    _mm_sfence();  // orders the streaming stores before later stores that publish the data
    std::memcpy(to + (end - bytes.data()), end, rest);
  }
  return ~appended(reduced, end, rest);
}

}  // namespace

bool can_fold_crc32() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
}

uint32_t fold_crc32(ConstBytes bytes, uint32_t before) {
  return folded<false>(bytes, before, nullptr);
}

uint32_t copy_and_fold_crc32(std::byte* to, ConstBytes bytes) {
  if (bytes.size() >= kStreamFrom) return folded<true>(bytes, 0, to);
  std::memcpy(to, bytes.data(), bytes.size());
  return fold_crc32(bytes, 0);
}

#else

bool can_fold_crc32() { return false; }
uint32_t fold_crc32(ConstBytes, uint32_t) { return 0; }
uint32_t copy_and_fold_crc32(std::byte*, ConstBytes) { return 0; }

#endif

bool can_copy_and_fold_crc32(const std::byte* to) {
  return reinterpret_cast<uintptr_t>(to) % kCacheLine == 0 && can_fold_crc32();
}

}  // namespace cpprun::archive

#include "snapshot_files/archive/crc32.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cpprun::archive {
namespace {

// Polynomials over GF(2) modulo the crc's polynomial. Reflected: the highest bit is x^0.
constexpr uint32_t kPolynomial = 0xEDB88320;
constexpr uint32_t kOne = 1U << 31;
constexpr uint32_t kX = 1U << 30;
constexpr uint32_t kByte = 1U << 23;  // x^8: appends a byte of zeros

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t power = kOne; power != 0; power >>= 1) {
    if ((a & power) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// Factors that append 2^i bytes of zeros.
constexpr std::array<uint32_t, 64> kZeroOperators = [] {
  std::array<uint32_t, 64> powers{kByte};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = multiply(powers[i - 1], powers[i - 1]);
  return powers;
}();

#if defined(__x86_64__)

constexpr size_t kLine = 64;
constexpr int kStride = 256;               // bytes folded per iteration, in four registers
constexpr size_t kFoldFrom = 4 << 10;      // for fewer bytes the setup costs more than it gains
constexpr size_t kStreamFrom = 256 << 10;  // smaller copies should stay in the cache

// x^n as the carry-less product of reflected operands needs it: shifted left by one.
constexpr uint64_t fold_by(int n) {
  uint32_t power = kOne;
  for (int i = 0; i < n; ++i) power = multiply(power, kX);
  return uint64_t{power} << 1;
}
constexpr auto kFoldLow = static_cast<int64_t>(fold_by(8 * kStride + 32));
constexpr auto kFoldHigh = static_cast<int64_t>(fold_by(8 * kStride - 32));

bool can_fold() {
  static const bool kCan =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
  return kCan;
}

// Bypasses the cache: an ordinary store would read the line before it overwrites it.
__attribute__((target("avx512f"))) inline void stream(std::byte* to, __m512i line) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line);
}

// Folds 256 bytes into the next 256 until 256 are left, whose crc libdeflate computes. Takes 42 ms
// per GiB, the time of reading the memory; libdeflate 1.14 with its 128-bit products takes 75 to 97
// (EPYC 9004). With kCopies it also stores everything at `to` past the cache: the copy is limited
// by memory bandwidth, so the crc32 costs nothing more.
template <bool kCopies>
__attribute__((target("avx512f,vpclmulqdq"))) uint32_t folded(ConstBytes bytes, uint32_t before,
                                                              std::byte* to) {
  const __m512i by = _mm512_set4_epi64(kFoldHigh, kFoldLow, kFoldHigh, kFoldLow);
  const std::byte* at = bytes.data();
  __m512i sums[4];
  for (size_t i = 0; i < 4; ++i) {
    sums[i] = _mm512_loadu_si512(at + kLine * i);
    if constexpr (kCopies) stream(to + kLine * i, sums[i]);
  }
  const auto state = static_cast<int>(~before);
  sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(state)));
  const std::byte* const end = at + bytes.size() / kStride * kStride;
  for (at += kStride; at != end; at += kStride) {
    for (size_t i = 0; i < 4; ++i) {
      const __m512i low = _mm512_clmulepi64_epi128(sums[i], by, 0x00);
      const __m512i high = _mm512_clmulepi64_epi128(sums[i], by, 0x11);
      const __m512i next = _mm512_loadu_si512(at + kLine * i);
      if constexpr (kCopies) stream(to + (at - bytes.data()) + kLine * i, next);
      sums[i] = _mm512_ternarylogic_epi64(low, high, next, 0x96);  // exclusive or of the three
    }
  }
  std::array<std::byte, kStride> left;
  std::memcpy(left.data(), sums, kStride);
  constexpr uint32_t kNoState = ~0U;  // `before` is part of the sums already
  const uint32_t crc = libdeflate_crc32(kNoState, left.data(), left.size());
  const size_t rest = bytes.size() % kStride;
  if constexpr (kCopies) {
    _mm_sfence();  // orders the streaming stores before later stores that publish the data
    std::memcpy(to + (end - bytes.data()), end, rest);
  }
  return libdeflate_crc32(crc, end, rest);
}

#endif

}  // namespace

uint32_t crc32(ConstBytes bytes, uint32_t before) {
  if (bytes.empty()) return before;  // libdeflate resets the crc if the address is null
#if defined(__x86_64__)
  if (bytes.size() >= kFoldFrom && can_fold()) return folded<false>(bytes, before, nullptr);
#endif
  return libdeflate_crc32(before, bytes.data(), bytes.size());
}

#if defined(__x86_64__)

std::optional<uint32_t> copy_crc32(std::byte* to, ConstBytes bytes) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(to) % kLine == 0;
  if (!is_aligned || !can_fold()) return std::nullopt;
  if (bytes.size() >= kStreamFrom) return folded<true>(bytes, 0, to);
  std::copy(bytes.begin(), bytes.end(), to);
  return crc32(bytes);
}

#else

std::optional<uint32_t> copy_crc32(std::byte*, ConstBytes) { return std::nullopt; }

#endif

uint32_t crc32_combine(uint32_t first, uint32_t second, uint64_t second_bytes) {
  for (size_t i = 0; second_bytes != 0; ++i, second_bytes >>= 1) {
    if ((second_bytes & 1) != 0) first = multiply(kZeroOperators[i], first);
  }
  return first ^ second;
}

std::string crc32_text(uint32_t crc32) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc32);
  return text;
}

}  // namespace cpprun::archive

#include "cpprun/archive/crc32.hpp"

#include <libdeflate.h>

#include <array>
#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cpprun::archive {
namespace {

// Polynomials modulo the crc's own, over GF(2). Reflected: the highest bit is x^0.
constexpr uint32_t kPolynomial = 0xEDB88320;
constexpr uint32_t kOne = 1U << 31;
constexpr uint32_t kX = 1U << 30;
constexpr uint32_t kByte = 1U << 23;  // x^8: a byte of zeros more

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t power = kOne; power != 0; power >>= 1) {
    if ((a & power) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// What 2^i bytes of zeros more multiply by.
constexpr std::array<uint32_t, 64> kZeros = [] {
  std::array<uint32_t, 64> powers{kByte};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = multiply(powers[i - 1], powers[i - 1]);
  return powers;
}();

#if defined(__x86_64__)

constexpr int kStride = 256;           // bytes folded at once: four registers of 64
constexpr size_t kFoldFrom = 4 << 10;  // below, setting up costs more than it gains

// x^n as the carry-less product of reflected operands wants it: one place to the left.
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

// Replaces 256 bytes by what is congruent to them 256 bytes later, until 256 are left, whose crc
// is libdeflate's work. Takes 42 ms per GiB, which is what reading the memory takes; the 128-bit
// products of libdeflate 1.14 alone take 75 to 97 (EPYC 9004).
__attribute__((target("avx512f,vpclmulqdq"))) uint32_t folded(ConstBytes bytes, uint32_t before) {
  const __m512i by = _mm512_set4_epi64(kFoldHigh, kFoldLow, kFoldHigh, kFoldLow);
  const std::byte* at = bytes.data();
  __m512i sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = _mm512_loadu_si512(at + 64 * i);
  const auto state = static_cast<int>(~before);
  sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(state)));
  const std::byte* const end = at + bytes.size() / kStride * kStride;
  for (at += kStride; at != end; at += kStride) {
    for (int i = 0; i < 4; ++i) {
      const __m512i low = _mm512_clmulepi64_epi128(sums[i], by, 0x00);
      const __m512i high = _mm512_clmulepi64_epi128(sums[i], by, 0x11);
      const __m512i next = _mm512_loadu_si512(at + 64 * i);
      sums[i] = _mm512_ternarylogic_epi64(low, high, next, 0x96);  // exclusive or of the three
    }
  }
  std::array<std::byte, kStride> left;
  std::memcpy(left.data(), sums, kStride);
  constexpr uint32_t kNoState = ~0U;  // `before` went into the sums
  const uint32_t crc = libdeflate_crc32(kNoState, left.data(), left.size());
  return libdeflate_crc32(crc, end, bytes.size() % kStride);
}

#endif

}  // namespace

uint32_t crc32(ConstBytes bytes, uint32_t before) {
  if (bytes.empty()) return before;  // libdeflate takes no address for "begin anew"
#if defined(__x86_64__)
  if (bytes.size() >= kFoldFrom && can_fold()) return folded(bytes, before);
#endif
  return libdeflate_crc32(before, bytes.data(), bytes.size());
}

uint32_t crc32_combine(uint32_t first, uint32_t second, uint64_t second_bytes) {
  for (size_t i = 0; second_bytes != 0; ++i, second_bytes >>= 1) {
    if ((second_bytes & 1) != 0) first = multiply(kZeros[i], first);
  }
  return first ^ second;
}

std::string crc32_text(uint32_t crc32) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc32);
  return text;
}

}  // namespace cpprun::archive

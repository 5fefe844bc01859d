#include "cpprun/archive/crc32.hpp"

#include <libdeflate.h>

#include <array>

namespace cpprun::archive {
namespace {

// Polynomials modulo the crc's own, over GF(2). Reflected: the highest bit is x^0.
constexpr uint32_t kPolynomial = 0xEDB88320;
constexpr uint32_t kOne = 1U << 31;
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

}  // namespace

uint32_t crc32(ConstBytes bytes, uint32_t before) {
  if (bytes.empty()) return before;  // libdeflate takes no address for "begin anew"
  return libdeflate_crc32(before, bytes.data(), bytes.size());
}

uint32_t crc32_combine(uint32_t first, uint32_t second, uint64_t second_bytes) {
  for (size_t i = 0; second_bytes != 0; ++i, second_bytes >>= 1) {
    if ((second_bytes & 1) != 0) first = multiply(kZeros[i], first);
  }
  return first ^ second;
}

}  // namespace cpprun::archive

// Polynomials over GF(2) modulo the polynomial of crc32. Reflected: the highest bit is x^0.
#pragma once

#include <cstdint>

namespace cpprun::archive {

constexpr uint32_t kCrcPolynomial = 0xEDB88320;
constexpr uint32_t kCrcOne = 1U << 31;
constexpr uint32_t kCrcX = 1U << 30;
constexpr uint32_t kCrcByte = 1U << 23;  // x^8: appends a byte of zeros

constexpr uint32_t multiply_modulo_crc(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t power = kCrcOne; power != 0; power >>= 1) {
    if ((a & power) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kCrcPolynomial : b >> 1;
  }
  return product;
}

}  // namespace cpprun::archive

// FNV-1a with 64 bits: a hash that is the same on every machine and in every build, unlike
// std::hash. Not for untrusted keys. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cpprun {

inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325;

// To hash several parts pass the hash of the parts before as `hash`.
constexpr uint64_t fnv1a(uint8_t byte, uint64_t hash = kFnvBasis) {
  return (hash ^ byte) * 0x100000001b3;
}
inline uint64_t fnv1a(std::span<const std::byte> bytes, uint64_t hash = kFnvBasis) {
  for (const std::byte byte : bytes) hash = fnv1a(static_cast<uint8_t>(byte), hash);
  return hash;
}
inline uint64_t fnv1a(std::string_view text, uint64_t hash = kFnvBasis) {
  return fnv1a(std::as_bytes(std::span(text)), hash);
}

}  // namespace cpprun

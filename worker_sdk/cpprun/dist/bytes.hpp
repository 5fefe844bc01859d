/// @file
/// ByteWriter and ByteReader: append values to a byte string and read them back, little-endian.
///
/// The bytes come from other processes, so the reader checks every length against the bytes that
/// are left before it uses it, and throws DistMismatchError with the position. One thread per
/// object.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "cpprun/dist/errors.hpp"

namespace cpprun::dist {

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");

/// Appends values to a byte string, little-endian. For specialisations of Codec.
class ByteWriter {
 public:
  /// Appends the sizeof(T) bytes of `value`.
  template <class T>
  requires std::is_arithmetic_v<T>
  void number(T value) { raw(&value, sizeof value); }
  /// Appends `size` bytes from `data`, without their length.
  void raw(const void* data, size_t size) {
    if (size > 0) bytes_.append(static_cast<const char*>(data), size);
  }
  /// Appends the length (uint64), then the bytes.
  void text(std::string_view text) {
    number<uint64_t>(text.size());
    bytes_ += text;
  }
  /// Moves the bytes out; the writer is empty afterwards.
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads back what a ByteWriter has written. Each function throws DistMismatchError, with the
/// position, if the bytes end too early.
class ByteReader {
 public:
  /// Reads `bytes`, which must outlive the reader and its results.
  explicit ByteReader(std::string_view bytes) : rest_(bytes), size_(bytes.size()) {}

  /// The next sizeof(T) bytes as a number.
  template <class T>
  requires std::is_arithmetic_v<T> T number() {
    T value;
    std::memcpy(&value, raw(sizeof value).data(), sizeof value);
    return value;
  }
  /// The next `size` bytes; the result points into the input.
  std::string_view raw(uint64_t size) {
    if (size > rest_.size()) short_by(size);
    const auto piece = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return piece;
  }
  /// The next length (uint64) and as many bytes; the result points into the input.
  std::string_view text() { return raw(number<uint64_t>()); }
  /// Reads a number of items, of which each takes at least `each` bytes.
  uint64_t count(uint64_t each) {
    const auto count = number<uint64_t>();
    if (count > rest_.size() / each) bad("announces " + std::to_string(count) + " items");
    return count;
  }
  /// Throws DistMismatchError if bytes are left.
  void end() const {
    if (!rest_.empty()) bad("does not end there");
  }
  /// Throws DistMismatchError: "malformed object: ", `what`, and the position.
  [[noreturn]] void bad(const std::string& what) const {
    throw DistMismatchError("malformed object: " + what + " at byte " +
                            std::to_string(size_ - rest_.size()) + " of " + std::to_string(size_));
  }

 private:
  [[noreturn]] void short_by(uint64_t size) const {
    bad("wants " + std::to_string(size) + " bytes, " + std::to_string(rest_.size()) + " are left,");
  }

  std::string_view rest_;
  size_t size_;
};

}  // namespace cpprun::dist

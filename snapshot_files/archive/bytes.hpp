// Source and Output: interfaces to the bytes of an archive. The archive code opens no files;
// snapshot_files::File implements both, and MemorySource serves tests and small texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace cpprun::archive {

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

inline ConstBytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline Bytes writable_bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

// Bytes that can be read at any offset. Concurrent calls are safe.
class Source {
 public:
  virtual ~Source() = default;
  // For error messages, such as a path.
  virtual const std::string& name() const = 0;
  virtual Result<uint64_t> size() const = 0;
  // Fills `into` from `offset` on; it is an error if fewer bytes are available.
  virtual Status read_at(uint64_t offset, Bytes into) const = 0;
  Result<std::string> read_text(uint64_t offset, size_t bytes) const;
};

// Bytes, and where in an Output they go.
struct Piece {
  uint64_t offset = 0;
  ConstBytes bytes;
  uint64_t end() const { return offset + bytes.size(); }
};

// Bytes that can be written at any offset, also by several processes at a time.
class Output {
 public:
  virtual ~Output() = default;
  virtual Status write_at(uint64_t offset, ConstBytes bytes) = 0;
  // Writes pieces in the order of their offsets. A file writes neighbours together.
  virtual Status write_all(std::span<const Piece> pieces);
};

// Reads memory, which the caller keeps alive.
class MemorySource final : public Source {
 public:
  explicit MemorySource(ConstBytes bytes, std::string name = "memory")
      : bytes_(bytes), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  Result<uint64_t> size() const override { return uint64_t{bytes_.size()}; }
  Status read_at(uint64_t offset, Bytes into) const override;

 private:
  const ConstBytes bytes_;
  const std::string name_;
};

}  // namespace cpprun::archive

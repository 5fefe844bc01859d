// Source and Output: where the bytes of an archive come from and go to. The archive itself opens no
// file; snapshot_files::File is both, and memory is a Source for tests and small texts.
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

// Bytes that can be read at any place. Calls do not disturb each other.
class Source {
 public:
  virtual ~Source() = default;
  // What errors call it, such as a path.
  virtual const std::string& name() const = 0;
  virtual Result<uint64_t> size() const = 0;
  // Fills `into` from `offset` on; fewer bytes than that are an error.
  virtual Status read_at(uint64_t offset, Bytes into) const = 0;
};

// Bytes that can be written at any place, from several processes at a time.
class Output {
 public:
  virtual ~Output() = default;
  virtual Status write_at(uint64_t offset, ConstBytes bytes) = 0;
};

// Memory that outlives it.
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

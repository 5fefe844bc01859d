// SliceSource: a part of another source as a source of its own. Thread-safe if the other is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/result.hpp"
#include "snapshot_files/archive/bytes.hpp"

namespace cpprun::archive {

class SliceSource final : public Source {
 public:
  // Requires: offset + bytes does not overflow. What lies behind the end of `whole` fails to read.
  SliceSource(std::shared_ptr<const Source> whole, uint64_t offset, uint64_t bytes,
              std::string name);
  const std::string& name() const override { return name_; }
  Result<uint64_t> size() const override { return bytes_; }
  Status read_at(uint64_t offset, Bytes into) const override;

 private:
  const std::shared_ptr<const Source> whole_;
  const uint64_t offset_, bytes_;
  const std::string name_;
};

}  // namespace cpprun::archive

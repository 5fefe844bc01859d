// TensorFile: reads what torch.save wrote, here or in Python: a tree of values, and the storages of
// its tensors. No code of the file is run (pickle/reader.hpp).
//
// Bytes may be hostile. Thread-safe after open, as far as its Source is. Python counterpart:
// torch.load(path, weights_only=True).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "snapshot_files/archive/bytes.hpp"
#include "snapshot_files/archive/zip_directory.hpp"
#include "snapshot_files/pickle/reader.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::archive {

class TensorFile {
 public:
  // Reads the directory and the tree, checks that every storage is there and large enough. Storages
  // are not read. Error (Protocol, or the source's own): names the source and what is wrong.
  static Result<TensorFile> open(std::shared_ptr<const Source> source,
                                 const pickle::ReadLimits& limits = {});

  const pickle::Value& value() const { return value_; }
  const std::string& name() const { return source_->name(); }

  // Bytes of a storage; 0 for one that the file does not have.
  uint64_t storage_bytes(std::string_view storage) const;
  // The whole storage into `into`, which has storage_bytes() bytes (a check); the crc32 is
  // verified. Error: unknown storage, cannot be read, or its bytes are not those that were written.
  Status read_storage(std::string_view storage, Bytes into) const;
  // A stretch of a storage, not verified: for readers that share the work, and verify together by
  // storage_crc32 and crc32_combine.
  Status read_part(std::string_view storage, uint64_t from, Bytes into) const;
  // What the file says.
  uint32_t storage_crc32(std::string_view storage) const;

  // Reads every record and compares its crc32.
  Status verify() const;

 private:
  TensorFile(std::shared_ptr<const Source> source, ZipDirectory directory)
      : source_(std::move(source)), directory_(std::move(directory)) {}
  const Record* record_of(std::string_view storage) const;
  Status check_storages() const;

  std::shared_ptr<const Source> source_;
  ZipDirectory directory_;
  pickle::Value value_;
};

}  // namespace cpprun::archive

// TensorFile: reads files of torch.save (C++ or Python): a tree of values, and the storages of its
// tensors. Runs no code of the file (pickle/pickle.hpp).
//
// The file may be hostile. Thread-safe after open if its Source is. Python counterpart:
// torch.load(path, weights_only=True).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "snapshot_files/archive/bytes.hpp"
#include "snapshot_files/archive/zip_directory.hpp"
#include "snapshot_files/pickle/pickle.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::archive {

class TensorFile {
 public:
  // Reads the directory and the tree, and checks that every storage exists and is large enough;
  // does not read the storages. Error (Protocol, or the source's own): names the source and the
  // problem.
  static Result<TensorFile> open(std::shared_ptr<const Source> source,
                                 const pickle::ReadLimits& limits = {});

  const pickle::Value& value() const { return value_; }
  const std::string& name() const { return source_->name(); }

  // Size of a storage in bytes; 0 for one that the file does not have.
  uint64_t storage_bytes(std::string_view storage) const;
  // Reads the whole storage into `into`, of storage_bytes() bytes (checked), and verifies its
  // crc32. Error: unknown storage, read failure, or wrong crc32.
  Status read_storage(std::string_view storage, Bytes into) const;
  // Reads a part of a storage without verifying it: for readers that share the work and verify it
  // together with storage_crc32 and crc32_combine.
  Status read_part(std::string_view storage, uint64_t from, Bytes into) const;
  // The crc32 from the file's directory.
  uint32_t storage_crc32(std::string_view storage) const;

  // Reads every record and verifies its crc32.
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

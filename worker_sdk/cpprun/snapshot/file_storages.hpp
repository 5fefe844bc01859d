// FileStorages: reads the storages of a file on disk. Private to snapshot.
#pragma once

#include <memory>
#include <utility>

#include "cpprun/snapshot/state/tensors.hpp"
#include "snapshot_files/archive/tensor_file.hpp"

namespace cpprun::snapshot {

class FileStorages final : public Storages {
 public:
  explicit FileStorages(std::shared_ptr<const archive::TensorFile> file) : file_(std::move(file)) {}
  Status read(const std::string& name, uint64_t from, std::span<std::byte> into) const override {
    return file_->read_part(name, from, into);
  }

 private:
  std::shared_ptr<const archive::TensorFile> file_;
};

}  // namespace cpprun::snapshot

// Tensors in a file, and the storages behind them. Private to snapshot and elastic.
//
// As in torch.save, a file has whole storages, each once: tensors that share a storage share it in
// the file too. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "common/result.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::snapshot {

// A storage to save.
struct Storage {
  std::string name;  // in the file
  at::Tensor bytes;  // all of it, as uint8 of one dimension, on its own device
  // Ranks may have different values (buffers of BatchNorm): the lowest rank's are saved.
  bool is_leaders = false;
};

class Capture {
 public:
  // Throws std::invalid_argument for a tensor without a strided storage (sparse, quantised) or with
  // a dtype that the format lacks.
  pickle::TensorRef add(const at::Tensor& tensor, bool is_leaders = false);
  std::vector<Storage> take_storages() { return std::move(storages_); }

 private:
  std::vector<Storage> storages_;
  std::map<std::pair<const void*, int>, size_t> known_;  // by storage and dtype
};

// Source of a file's storages, on disk or in memory.
class Storages {
 public:
  virtual ~Storages() = default;
  virtual Status read(const std::string& name, uint64_t from, std::span<std::byte> into) const = 0;
};

class FileStorages final : public Storages {
 public:
  explicit FileStorages(std::shared_ptr<const archive::TensorFile> file) : file_(std::move(file)) {}
  Status read(const std::string& name, uint64_t from, std::span<std::byte> into) const override {
    return file_->read_part(name, from, into);
  }

 private:
  std::shared_ptr<const archive::TensorFile> file_;
};

// Reads a tensor to the CPU. Throws std::runtime_error if it cannot be read.
at::Tensor make_tensor(const pickle::TensorRef& ref, const Storages& storages);
// Overwrites `into`, which has the same sizes, any device and any dtype. Reads directly into its
// memory if dtype and strides are those of the file.
void fill(const at::Tensor& into, const pickle::TensorRef& ref, const Storages& storages);
// Overwrites the content of `value` if sizes and dtype are equal and each of its elements has
// memory of its own (those of an expanded tensor do not); else replaces it by a new tensor on its
// device.
void assign(at::Tensor& value, const pickle::TensorRef& ref, const Storages& storages);

}  // namespace cpprun::snapshot

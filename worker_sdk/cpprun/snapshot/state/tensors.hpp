// Tensors as a file names them, and the storages behind them. Private to snapshot.
//
// Whole storages are kept, each once, as torch.save does: tensors that share one share it in the
// file as well. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "common/result.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::snapshot {

// A storage that is to be kept.
struct Storage {
  std::string name;  // in its file
  at::Tensor bytes;  // all of it, as uint8 of one dimension, on its own device
  // Ranks may differ in it (buffers of BatchNorm): the copy of the lowest rank counts.
  bool is_leaders = false;
};

class Capture {
 public:
  // Throws std::invalid_argument for a tensor that has no storage (sparse, quantised) or a dtype
  // that files do not have.
  pickle::TensorRef add(const at::Tensor& tensor, bool is_leaders = false);
  std::vector<Storage> take_storages() { return std::move(storages_); }

 private:
  std::vector<Storage> storages_;
  std::map<std::pair<const void*, int>, size_t> known_;  // by storage and dtype
};

// Where the storages of a file can be read: on a disk, or in memory.
class Storages {
 public:
  virtual ~Storages() = default;
  virtual Status read(const std::string& name, uint64_t from, std::span<std::byte> into) const = 0;
};

// The tensor, on the CPU. Throws std::runtime_error when it can't be read.
at::Tensor make_tensor(const pickle::TensorRef& ref, const Storages& storages);
// Overwrites `into`, which has the same sizes, on any device and of any dtype. Bytes go where they
// belong without a copy between, if they lie in the file as they do in `into`.
void fill(const at::Tensor& into, const pickle::TensorRef& ref, const Storages& storages);
// `value` becomes the tensor: its content, if sizes and dtype are the same and each element has
// memory of its own (an expanded tensor's have not); else another tensor on the same device.
void assign(at::Tensor& value, const pickle::TensorRef& ref, const Storages& storages);

}  // namespace cpprun::snapshot

// MemoryStorages: the storages of captured tensors in the memory of this process. Private to
// elastic.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/snapshot/state/tensors.hpp"

namespace cpprun::detail {

class MemoryStorages final : public snapshot::Storages {
 public:
  // Copies the bytes, so that later changes of the tensors do not reach them.
  void add_copies(const std::vector<snapshot::Storage>& storages);
  // `bytes`: uint8 on the CPU, of one dimension.
  void add(const std::string& name, at::Tensor bytes) { by_name_[name] = std::move(bytes); }

  Status read(const std::string& name, uint64_t from, std::span<std::byte> into) const override;

 private:
  std::map<std::string, at::Tensor> by_name_;
};

}  // namespace cpprun::detail

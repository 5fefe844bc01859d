// The storages of a file as tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "cpprun/snapshot/state/tensors.hpp"

namespace cpprun::test {

class HeldStorages final : public snapshot::Storages {
 public:
  explicit HeldStorages(std::map<std::string, at::Tensor> tensors) : tensors_(std::move(tensors)) {}
  // A template, so that braces select the other overload.
  template <std::same_as<std::vector<snapshot::Storage>> Captured>
  explicit HeldStorages(const Captured& captured) {
    for (const auto& each : captured) tensors_.emplace(each.name, each.bytes);
  }
  Status read(const std::string& name, uint64_t from, std::span<std::byte> into) const override {
    const auto* bytes = static_cast<const std::byte*>(tensors_.at(name).const_data_ptr());
    std::memcpy(into.data(), bytes + from, into.size());
    return {};
  }

 private:
  std::map<std::string, at::Tensor> tensors_;
};

}  // namespace cpprun::test

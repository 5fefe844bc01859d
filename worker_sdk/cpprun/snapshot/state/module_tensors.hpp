// The parameters and buffers of a module. Private to snapshot.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace cpprun::snapshot {

struct Named {
  std::string name;
  at::Tensor tensor;
  bool is_buffer = false;
};

// In the module's order, parameters first; without those that are undefined.
std::vector<Named> tensors_of(const torch::nn::Module& module);

}  // namespace cpprun::snapshot

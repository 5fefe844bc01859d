#include "cpprun/snapshot/state/module_tensors.hpp"

#include <torch/nn/module.h>

namespace cpprun::snapshot {

std::vector<Named> tensors_of(const torch::nn::Module& module) {
  std::vector<Named> all;
  for (const auto& item : module.named_parameters()) all.push_back({item.key(), *item, false});
  for (const auto& item : module.named_buffers()) all.push_back({item.key(), *item, true});
  std::erase_if(all, [](const Named& each) { return !each.tensor.defined(); });
  return all;
}

}  // namespace cpprun::snapshot

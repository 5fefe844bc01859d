// UpdateWatch: whether an optimizer has begun to change its parameters. Private to elastic.
//
// LibTorch's optimizers have no hooks. Adam, AdamW, Adagrad and RMSprop count their steps for each
// parameter. SGD and optimizers of the program leave no such trace, so the watch keeps a copy of
// their parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::optim {
class Optimizer;
}

namespace cpprun::detail {

class UpdateWatch {
 public:
  explicit UpdateWatch(const torch::optim::Optimizer& optimizer);

  // Since the construction.
  bool has_begun() const;

 private:
  const torch::optim::Optimizer& optimizer_;
  // Of each parameter; -1: it has no state yet. Nothing: the optimizer does not count.
  const std::optional<std::vector<int64_t>> counts_;
  std::vector<at::Tensor> copies_;  // of the parameters, if it does not count
};

}  // namespace cpprun::detail

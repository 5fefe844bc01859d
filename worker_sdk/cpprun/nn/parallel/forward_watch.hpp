// ForwardWatch: notices gradients without a DistributedDataParallel::forward before them, which a
// call of the wrapped module's own forward makes. Nothing averages these, so the models of the
// ranks drift apart while every loss falls. The first one is a warning on stderr.
//
// Forwards come on the user's thread, gradients on the threads of autograd. Private to nn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/function.h>

namespace cpprun::nn::parallel {

class ForwardWatch {
 public:
  ForwardWatch(const std::vector<at::Tensor>& parameters, std::string model_type);
  ForwardWatch(const ForwardWatch&) = delete;
  ForwardWatch& operator=(const ForwardWatch&) = delete;
  ~ForwardWatch();

  // A forward with gradients begins. If it `averages`, it stands for one backward, as with the
  // Reducer; if not (no_sync), for any number.
  void on_forward(bool averages);

 private:
  struct Shared;  // with the hooks, which a backward may still run
  using Hook = std::pair<std::shared_ptr<torch::autograd::Node>, uintptr_t>;

  std::shared_ptr<Shared> shared_;
  std::vector<Hook> hooks_;
};

}  // namespace cpprun::nn::parallel

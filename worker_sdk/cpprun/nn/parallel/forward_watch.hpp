// ForwardWatch: detects gradients without a preceding DistributedDataParallel::forward, which are
// the result of calling the wrapped module's own forward. DDP does not average them, so the ranks'
// models drift apart although every loss falls. Prints one warning on stderr.
//
// Forwards run on the user's thread, gradients on autograd threads. Private to nn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

namespace cpprun::nn::parallel {

class ForwardWatch {
 public:
  ForwardWatch(const std::vector<at::Tensor>& parameters, std::string model_type);
  ForwardWatch(const ForwardWatch&) = delete;
  ForwardWatch& operator=(const ForwardWatch&) = delete;
  ~ForwardWatch();

  // Call it before a forward with gradients. `averages`: the forward is for one backward, as in the
  // Reducer; otherwise (no_sync) for any number.
  void on_forward(bool averages);

 private:
  struct Shared;  // shared with the hooks, which a running backward may still call
  // A shared_ptr to the node, since torch 2.15 an intrusive_ptr.
  using NodePointer = decltype(torch::autograd::Edge::function);
  using Hook = std::pair<NodePointer, uintptr_t>;

  std::shared_ptr<Shared> shared_;
  std::vector<Hook> hooks_;
};

}  // namespace cpprun::nn::parallel

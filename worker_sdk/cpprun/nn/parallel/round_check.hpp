// RoundCheck: backward throws if the round of cpprun::elastic has ended meanwhile, before an
// optimizer uses gradients of a collective that was aborted. Private to nn.
//
// Waits for the GPU at the end of each backward. One thread; backward may run the hooks on another.
#pragma once

#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cpprun::nn::parallel {

class RoundCheck {
 public:
  // `parameters`: whose gradients are averaged, all on one device.
  explicit RoundCheck(const std::vector<at::Tensor>& parameters);
  RoundCheck(const RoundCheck&) = delete;
  RoundCheck& operator=(const RoundCheck&) = delete;
  ~RoundCheck();

 private:
  std::vector<std::pair<at::Tensor, unsigned>> hooks_;
};

}  // namespace cpprun::nn::parallel

// The tutorial's toy: 2048 pairs of 20 random inputs and one target, a linear layer.
#pragma once

#include <torch/data.h>
#include <torch/nn/modules/linear.h>

#include <utility>

namespace cpprun::test {

class ToyData : public torch::data::datasets::Dataset<ToyData> {
 public:
  explicit ToyData(int64_t size = 2048) {
    torch::manual_seed(1);
    inputs_ = torch::randn({size, 20});
    targets_ = inputs_.sum(1, /*keepdim=*/true) * 0.3 + 1;
  }
  torch::data::Example<> get(size_t index) override {
    const auto at = static_cast<int64_t>(index);
    return {inputs_[at], targets_[at]};
  }
  std::optional<size_t> size() const override { return inputs_.size(0); }

 private:
  at::Tensor inputs_, targets_;
};

inline auto toy_data(int64_t size = 2048) {
  return ToyData(size).map(torch::data::transforms::Stack<>());
}
using ToyBatches = decltype(toy_data());

inline std::shared_ptr<torch::nn::LinearImpl> toy_net() {
  torch::manual_seed(2);
  return std::make_shared<torch::nn::LinearImpl>(20, 1);
}

}  // namespace cpprun::test

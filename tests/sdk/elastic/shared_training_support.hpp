// SharedTraining: a net with BatchNorm, an optimizer, a scheduler, a sampler and values, which live
// as long as their process, for the cases of share_state() and ElasticSteps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/elastic/elastic_state.hpp"
#include "cpprun/optim/lr_scheduler.hpp"
#include "tests/sdk/elastic/training_support.hpp"

namespace cpprun::test {

class SharedTraining {
 public:
  explicit SharedTraining(const ElasticWords& words);

  ElasticState& state() { return state_; }
  const std::shared_ptr<torch::nn::SequentialImpl>& net() const { return net_; }
  std::string hash() const { return hash_of(*net_); }
  void track(Snapshot& snapshot);

  at::Tensor next_batch();  // of the sampler
  // `updated` runs between the steps of the optimizer and of the scheduler.
  template <class Model>
  void step(Model& ddp, int64_t step, const at::Tensor& data,
            const std::function<void()>& updated) {
    optimizer_->zero_grad();
    const auto hook = words_.kill_in_backward(net_->parameters().front(), step == 10);
    (ddp(data.to(words_.device())).pow(2).mean() * scale_.item<double>()).backward();
    optimizer_->step();
    updated();
    scheduler_->step();
    scale_ *= 1.01;
    ++steps_;
  }

  // Its state is that of the donor: with fault=donor, to save it in the second round is fatal.
  struct FatalState {
    const SharedTraining* training;
    StateDict state_dict() const;
    void load_state_dict(const StateDict& state);
  };

 private:
  const ElasticWords& words_;
  std::shared_ptr<torch::nn::SequentialImpl> net_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<optim::LRScheduler> scheduler_;
  data::DistributedSampler sampler_;
  at::Tensor scale_ = torch::ones({1}, torch::kDouble);
  int64_t steps_ = 0;
  FatalState fatal_{this};
  ElasticState state_;
};

}  // namespace cpprun::test

// zero: training with ZeroRedundancyOptimizer under DistributedDataParallel; twins/zero.py prints
// the same.
#include "cpprun/dist/process_group.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/optim/clip_grad.hpp"
#include "cpprun/optim/fused.hpp"
#include "cpprun/optim/lr_schedulers.hpp"
#include "cpprun/optim/zero_redundancy_optimizer.hpp"
#include "tests/sdk/nn/nets.hpp"
#include "tests/sdk/support/cases.hpp"

namespace cpprun::test {
namespace {

using optim::ZeroRedundancyOptimizer;

// Layers of one size, as real models have.
struct Even : torch::nn::Module {
  Even() {
    for (int i = 0; i < 12; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(12, 12)));
    }
    last = register_module("last", torch::nn::Linear(12, 4));
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers) x = x + torch::tanh(layer(x));
    return last(x);
  }
  std::vector<torch::nn::Linear> layers;
  torch::nn::Linear last{nullptr};
};

int64_t elements_with_state(torch::optim::Optimizer& optimizer) {
  int64_t sum = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      if (optimizer.state().count(parameter.unsafeGetTensorImpl()) != 0) sum += parameter.numel();
    }
  }
  return sum;
}

// The first layer has a group of its own, with another rate.
template <class Options>
std::vector<torch::optim::OptimizerParamGroup> two_groups(std::vector<at::Tensor> parameters,
                                                          Options options) {
  const std::vector<at::Tensor> first(parameters.begin(), parameters.begin() + 2);
  const std::vector<at::Tensor> rest(parameters.begin() + 2, parameters.end());
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(first, std::make_unique<Options>(options));
  groups.back().options().set_lr(0.02);
  groups.emplace_back(rest, std::make_unique<Options>(options));
  return groups;
}

template <class Optimizer, class Options>
void train_sharded(const std::string& name, const Options& options) {
  const std::string rank = std::to_string(dist::get_rank()) + " ";
  torch::manual_seed(7);
  nn::parallel::DistributedDataParallel ddp(std::make_shared<Even>());
  Optimizer optimizer(two_groups(ddp.parameters(), options), options);
  optim::lr_scheduler::ExponentialLR schedule(optimizer, {.gamma = 0.9});
  Batches batches(dist::get_rank());
  for (int step = 0; step < 20; ++step) {
    const Batch batch = batches.next();
    ddp.zero_grad();
    const at::Tensor loss = torch::mse_loss(ddp(batch.x), batch.y);
    loss.backward();
    nn::utils::clip_grad_norm_(ddp.parameters(), 1.0);
    optimizer.step();
    schedule.step();
    print_line(name + " loss " + rank + std::to_string(step) + " " + digits(loss.item<double>()));
  }
  print_line(name + " elements " + rank + std::to_string(elements_with_state(optimizer)));
  print_line(name + " end " + rank + std::to_string(hash_of(ddp.module())));
}

}  // namespace

SDK_CASE(zero) {
  using namespace torch::optim;
  const auto group = dist::init_process_group({.backend = "gloo"});
  const auto sgd = SGDOptions(0.05).momentum(0.9);
  const auto adamw = AdamWOptions(0.003);
  train_sharded<optim::FusedSGD>("plain-sgd", sgd);
  train_sharded<ZeroRedundancyOptimizer<optim::FusedSGD>>("zero-sgd", sgd);
  train_sharded<optim::FusedAdamW>("plain-adamw", adamw);
  train_sharded<ZeroRedundancyOptimizer<optim::FusedAdamW>>("zero-adamw", adamw);
  return 0;
}

}  // namespace cpprun::test

// The smallest distributed training: fits a line to noisy points, on any number of ranks.
#include <cstdio>

#include "cpprun/torch.hpp"

namespace dist = cpprun::dist;

int train(cpprun::Args) {
  auto group = dist::init_process_group_or_single({.backend = "gloo"});
  torch::manual_seed(0);
  const auto x = torch::randn({64, 1});
  const auto y = 3 * x + 2 + 0.1 * torch::randn({64, 1});

  cpprun::data::DistributedSampler sampler(64);
  cpprun::nn::parallel::DistributedDataParallel ddp(torch::nn::Linear(1, 1));
  torch::optim::SGD optimizer(ddp.parameters(), 0.1);
  torch::Tensor loss;
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    sampler.set_epoch(epoch);
    while (auto rows = sampler.next(8)) {
      const std::vector<int64_t> numbers(rows->begin(), rows->end());
      const auto batch = torch::tensor(numbers);
      ddp.zero_grad();
      loss = torch::mse_loss(ddp(x.index_select(0, batch)), y.index_select(0, batch));
      loss.backward();
      optimizer.step();
    }
  }
  dist::all_reduce(loss.detach_(), dist::ReduceOp::AVG);
  const auto& line = ddp.module();
  if (dist::is_main_process()) {
    std::printf("%d rank(s), loss %.4f, line %.2f x + %.2f\n", dist::get_world_size(),
                loss.item<double>(), line.weight.item<double>(), line.bias.item<double>());
  }
  return 0;
}

int main(int argc, char** argv) { return cpprun::main(argc, argv, train); }

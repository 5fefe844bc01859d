// A training loop that stays in place when another worker fails.
//
//   cpprun --standalone --nproc_per_node=3 --max_restarts=3 ./ex_elastic_steps
//
// Kill a worker with kill -9: the others keep their processes, the net and the optimizer, and a new
// worker gets these from them. The final parameters are those of a run without the failure
// (docs/how-to/in-process-restart.md).
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "cpprun/torch.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

// Each sample from its number, whichever process computes it.
torch::Tensor inputs_of(const std::vector<size_t>& samples) {
  std::vector<torch::Tensor> rows;
  for (const size_t each : samples) {
    rows.push_back(torch::randn({16}, at::detail::createCPUGenerator(each)));
  }
  return torch::stack(rows);
}

std::vector<size_t> next_batch(cpprun::data::DistributedSampler& sampler) {
  auto samples = sampler.next(32);
  while (!samples) {
    sampler.set_epoch(sampler.epoch() + 1);
    samples = sampler.next(32);
  }
  return *samples;
}

int train(cpprun::Args args) {
  int last = 1000, sleep = 10;
  examples::Options("A training loop that stays in place when another worker fails.")
      .add("--steps", last, "optimizer steps")
      .add("--sleep", sleep, "milliseconds of each step")
      .parse(args);
  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Linear(16, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
  cpprun::data::DistributedSampler sampler(9600);

  cpprun::ElasticState state;
  state.track(net).track(optimizer).track(sampler);
  cpprun::ElasticSteps steps(last, state, {.group = {.backend = "gloo"}, .min_world = 2});
  auto ddp = steps.data_parallel(net);
  int64_t seen = -1;
  for (const int64_t step : steps) {
    steps.commit([&] {  // the whole body of the loop
      const int64_t round = steps.round().number();
      if (std::exchange(seen, round) != round) {
        examples::print_line("process ", ::getpid(), " continues with step ", step, " in round ",
                             round);
      }
      const torch::Tensor x = inputs_of(next_batch(sampler));
      optimizer.zero_grad();
      torch::mse_loss(ddp(x), x.sum(1, true).sin()).backward();
      optimizer.step();
      std::this_thread::sleep_for(std::chrono::milliseconds(sleep));
    });
  }
  examples::print_line("all steps done, parameters ", net->parameters()[0].sum().item<double>());
  return 0;
}

int main(int argc, char** argv) { return cpprun::main(argc, argv, train); }

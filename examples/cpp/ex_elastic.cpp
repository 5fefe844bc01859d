// A training whose processes stay alive when another worker fails.
//
//   cpprun --standalone --nproc_per_node=3 --max_restarts=3 --snapshot-dir=snapshots ./ex_elastic
//
// Kill a worker with kill -9: the others keep their processes, the net and the optimizer, meet a
// new worker in the next round, and all continue with the newest snapshot in memory. The final
// parameters are those of a run without the failure (docs/how-to/in-process-restart.md).
#include <unistd.h>

#include <thread>

#include "cpprun/torch.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace nn = cpprun::nn::parallel;

// The data of a step and a rank, whichever process computes them.
torch::Tensor batch(int64_t step, int rank) {
  const auto seed = static_cast<uint64_t>(1000 * step + rank);
  return torch::randn({32, 16}, at::detail::createCPUGenerator(seed));
}

int train(cpprun::Args args) {
  int steps = 1000, sleep = 10;
  examples::Options("A training that outlives the failure of workers.")
      .add("--steps", steps, "optimizer steps")
      .add("--sleep", sleep, "milliseconds of each step")
      .parse(args);

  // Once per process.
  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Linear(16, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));

  // Once per process and round.
  return cpprun::elastic({.min_world = 2}, [&](cpprun::ElasticRound& round) {
    auto group = round.init_process_group({.backend = "gloo"});
    nn::DistributedDataParallel ddp(net);
    cpprun::Snapshot snapshot;
    snapshot.track(ddp).track(optimizer, ddp);
    int64_t step = snapshot.resume().step;
    examples::print_line("process ", ::getpid(), " continues with step ", step, " in round ",
                         round.number());
    while (step < steps) {
      const torch::Tensor x = batch(step, round.rank());
      optimizer.zero_grad();
      torch::mse_loss(ddp(x), x.sum(1, true).sin()).backward();
      optimizer.step();
      round.commit(++step);
      snapshot.maybe_save(step, {.every_steps = 10});
      std::this_thread::sleep_for(std::chrono::milliseconds(sleep));
    }
    examples::print_line("all steps done, parameters ", net->parameters()[0].sum().item<double>());
    return 0;
  });
}

int main(int argc, char** argv) { return cpprun::main(argc, argv, train); }

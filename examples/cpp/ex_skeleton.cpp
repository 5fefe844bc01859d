// The structure of a fault-tolerant training: set up, load a snapshot, train and save, clean up.
//
//   cpprun --standalone --nproc_per_node=2 --max_restarts=3 ./ex_skeleton
//   ./ex_skeleton          # run again, it resumes from the last snapshot
#include "cpprun/torch.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace dist = cpprun::dist;

int train(cpprun::Args args) {
  int epochs = 20;
  examples::Options("A fault-tolerant training.")
      .add("--epochs", epochs, "training epochs")
      .parse(args);

  // 1. Set up.
  auto group = dist::init_process_group_or_single({.backend = "gloo"});
  torch::manual_seed(0);
  const auto x = torch::randn({64, 1});
  const auto y = 3 * x + 2 + 0.1 * torch::randn({64, 1});
  cpprun::data::DistributedSampler sampler(64);
  cpprun::nn::parallel::DistributedDataParallel model(torch::nn::Linear(1, 1));
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));

  // 2. Declare the training's state, and load it if there is a snapshot.
  int epochs_run = 0;
  cpprun::Snapshot snapshot({.dir = "skeleton-snapshots", .keep = 2});
  snapshot.track(model).track(optimizer, model).track(sampler).track_rng();
  snapshot.track("epochs_run", epochs_run);
  const auto from = snapshot.resume();
  int64_t step = from.step;  // counts optimizer steps over all runs
  if (from && dist::is_main_process()) examples::print_line("resumed from step ", step);

  // 3. Train. All ranks save together, without waiting for the disk.
  for (; epochs_run < epochs; ++epochs_run) {
    sampler.set_epoch(epochs_run);
    while (auto rows = sampler.next(8)) {
      const auto batch = torch::tensor(std::vector<int64_t>(rows->begin(), rows->end()));
      optimizer.zero_grad();
      torch::mse_loss(model(x.index_select(0, batch)), y.index_select(0, batch)).backward();
      optimizer.step();
      snapshot.maybe_save(++step, {.every_steps = 20, .every = std::chrono::minutes(2)});
    }
  }
  snapshot.save(step);  // waits for the disk

  // 4. Clean up: the destructors end the snapshot, then the group.
  const auto& line = model.module();
  if (dist::is_main_process())
    examples::print_line("line ", line.weight.item<double>(), " x + ", line.bias.item<double>());
  return 0;
}

int main(int argc, char** argv) { return cpprun::main(argc, argv, train); }

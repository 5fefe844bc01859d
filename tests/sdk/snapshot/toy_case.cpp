// snapshot_toy EPOCHS FILE: a training that twins/snapshot_toy.py continues, and the other way
// round; prints the parameters.
#include <cstdio>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/optim/lr_schedulers.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "tests/sdk/snapshot/training_support.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;

struct Toy : torch::nn::Module {
  Toy() {
    register_module("first", first);
    register_module("last", last);
    torch::NoGradGuard no_grad;
    for (auto& each :
         parameters()) {  // the same numbers as in Python, independent of its generators
      each.copy_(torch::linspace(-0.3, 0.3, each.numel()).view(each.sizes()));
    }
  }
  at::Tensor forward(const at::Tensor& x) { return last(torch::relu(first(x))); }
  torch::nn::Linear first{8, 16}, last{16, 1};
};

void train_epoch(Toy& net, torch::optim::Optimizer& optimizer, const test::Data& data,
                 data::DistributedSampler& sampler) {
  while (auto rows = sampler.next(16)) {
    const auto batch = torch::tensor(std::vector<int64_t>(rows->begin(), rows->end()));
    optimizer.step([&] {
      optimizer.zero_grad();
      auto loss = torch::mse_loss(net.forward(data.inputs.index_select(0, batch)),
                                  data.targets.index_select(0, batch));
      loss.backward();
      return loss;
    });
  }
}

}  // namespace

SDK_CASE(snapshot_toy) {
  const auto net = std::make_shared<Toy>();
  const test::Data data;
  const auto optimizer = test::make_optimizer(args.at(2), net->parameters());
  optim::StepLR schedule(*optimizer, {.step_size = 4, .gamma = 0.5});
  data::DistributedSampler sampler(test::kSamples, {.num_replicas = 1, .rank = 0});
  int epochs_run = 0;
  Snapshot snapshot({.file = args.at(1)});
  snapshot.track(net).track(*optimizer, net).track(schedule).track(sampler);
  snapshot.track("epochs_run", epochs_run);
  snapshot.resume();
  std::printf("from %d\n", epochs_run);
  for (; epochs_run < std::stoi(args.at(0)); ++epochs_run) {
    sampler.set_epoch(epochs_run);
    train_epoch(*net, *optimizer, data, sampler);
    schedule.step();
  }
  snapshot.save(epochs_run * 6);
  std::printf("parameters");
  for (const auto& each : net->parameters()) {
    const auto flat = each.flatten();
    for (int64_t i = 0; i < flat.numel(); ++i) std::printf(" %.9g", flat[i].item<double>());
  }
  std::printf("\n");
  return 0;
}

// trainer_toy EPOCHS ACCUMULATE: the toy on several ranks; twins/trainer_toy.py prints the same.
// heap: how large this process has become before main, in small blocks.
// trainer_stop within|after: the last rank is asked to stop in training epoch 2; all do.
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/trainer/trainer.hpp"
#include "cpprun/worker/stop_request.hpp"
#include "tests/sdk/support/cases.hpp"
#include "tests/sdk/trainer/toy_support.hpp"

namespace {

using namespace cpprun;

class Toy : public Trainer<torch::nn::LinearImpl, test::ToyBatches> {
 public:
  using Trainer::Trainer;
  int stops_in = -1;

 protected:
  at::Tensor loss(const at::Tensor& output, const at::Tensor& targets) override {
    return torch::nn::functional::mse_loss(output, targets);
  }
  at::Tensor run_batch(const at::Tensor& source, const at::Tensor& targets) override {
    const bool is_last = dist::get_rank() == dist::get_world_size() - 1;
    if (is_last && epochs_run_ == stops_in) worker::request_stop();
    return Trainer::run_batch(source, targets);
  }
  void save_snapshot(int epoch) override {
    if (dist::is_master()) std::printf("saved %d\n", epoch);
  }
  void load_snapshot() override {}
  void on_stop(int epoch, bool is_epoch_over) override {
    std::printf("stop rank %d in %d over %d\n", dist::get_rank(), epoch, is_epoch_over);
    Trainer::on_stop(epoch, is_epoch_over);
  }
};

}  // namespace

SDK_CASE(heap) {
  static_cast<void>(args);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    const bool is_heap = line.ends_with("[heap]");
    if (!is_heap || std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    std::printf("heap %lu KiB\n", (end - begin) >> 10);
  }
  return 0;
}

SDK_CASE(trainer_toy) {
  const auto group = dist::init_process_group();
  const auto net = test::toy_net();
  torch::optim::SGD sgd(net->parameters(), 0.01);
  Toy trainer(net, test::toy_data(), sgd,
              {.batch_size = 32, .save_every = 2, .accumulate = std::stol(args.at(1))});
  trainer.train(std::stoi(args.at(0)));
  std::printf("rank %d loss %.17g bias %.17g weights %.17g\n", dist::get_rank(),
              trainer.last_loss().item<double>(), net->bias.item<double>(),
              net->weight.to(torch::kDouble).sum().item<double>());
  return 0;
}

SDK_CASE(trainer_stop) {
  const auto group = dist::init_process_group();
  const auto net = test::toy_net();
  torch::optim::SGD sgd(net->parameters(), 0.01);
  const bool is_within = args.at(0) == "within";
  Toy trainer(net, test::toy_data(), sgd,
              {.save_every = 0, .stop_check_batches = is_within ? 3 : -1, .is_quiet = true});
  trainer.stops_in = 2;
  trainer.train(5);
  std::printf("rank %d ended %d epochs stopped %d\n", dist::get_rank(), trainer.epochs_run(),
              trainer.is_stopped());
  return 0;
}

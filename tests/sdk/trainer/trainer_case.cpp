// trainer_toy EPOCHS ACCUMULATE: the toy on several ranks; twins/trainer_toy.py prints the same.
// heap: the size of this process in small blocks before main. trainer_stop within|after: the last
// rank gets a stop request in training epoch 2; all stop. trainer_wide EPOCHS SAVE_EVERY STEP_MS:
// saves every SAVE_EVERY steps, resumes, prints a hash.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/trainer/trainer.hpp"
#include "cpprun/worker/internal/own_agent.hpp"
#include "examples/cpp/support/hash.hpp"
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
    if (dist::is_main_process()) std::printf("saved %d\n", epoch);
  }
  void load_snapshot() override {}
  void on_stop(int epoch, bool is_epoch_over) override {
    std::printf("stop rank %d in %d over %d\n", dist::get_rank(), epoch, is_epoch_over);
    Trainer::on_stop(epoch, is_epoch_over);
  }
};

// Several MiB of gradients, so that DDP has several buckets, and the position of a gradient in them
// decides in which order four ranks sum it. Adam shows a difference in the last bit.
std::shared_ptr<torch::nn::SequentialImpl> wide_net() {
  torch::manual_seed(2);
  torch::nn::Sequential net;
  net->push_back(torch::nn::Linear(20, 768));
  for (int i = 0; i < 2; ++i) {
    net->push_back(torch::nn::ReLU());
    net->push_back(torch::nn::Linear(768, 768));
  }
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::Linear(768, 1));
  return net.ptr();
}

class Wide : public Trainer<torch::nn::SequentialImpl, test::ToyBatches> {
 public:
  using Trainer::Trainer;
  std::chrono::milliseconds step_time{0};

 protected:
  at::Tensor loss(const at::Tensor& output, const at::Tensor& targets) override {
    return torch::nn::functional::mse_loss(output, targets);
  }
  at::Tensor run_batch(const at::Tensor& source, const at::Tensor& targets) override {
    std::this_thread::sleep_for(step_time);
    return Trainer::run_batch(source, targets);
  }
};

}  // namespace

SDK_CASE(trainer_wide) {
  const auto group = dist::init_process_group();
  const auto net = wide_net();
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
  Wide trainer(net, test::toy_data(256), adam,
               {.batch_size = 8,
                .save_every = 0,
                .save_when = {.every_steps = std::stol(args.at(1))},
                .snapshot_dir = "snapshots"});
  trainer.step_time = std::chrono::milliseconds(std::stol(args.at(2)));
  trainer.train(std::stoi(args.at(0)));
  std::printf("hash=%s\n", examples::hash_of(*net).c_str());
  return trainer.exit_code();
}

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
              {.save_every = 0, .stop_check_batches = is_within ? 3 : -1, .verbose = false});
  trainer.stops_in = 2;
  trainer.train(5);
  std::printf("rank %d ended %d epochs stopped %d\n", dist::get_rank(), trainer.epochs_run(),
              trainer.is_stopped());
  return 0;
}

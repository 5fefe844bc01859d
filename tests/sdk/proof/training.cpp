// A training run that can be killed at any moment: a net with dropout, a scheduler and a sampler,
// with a snapshot every few steps that is written while training goes on. Prints a hash of
// everything that must be exact at the end.
//
//   sdk_proof_training sgd|adamw DIR STEPS SAVE_EVERY STEP_MS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "cpprun/torch.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/faults.hpp"
#include "examples/cpp/support/hash.hpp"

namespace dist = cpprun::dist;
using cpprun::nn::parallel::DistributedDataParallel;

namespace {

constexpr int64_t kSamples = 480, kFeatures = 16, kBatch = 24;  // per step, over all ranks

struct Net : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return last(torch::dropout(torch::relu(norm(first(x))), 0.3, is_training()));
  }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(kFeatures, 64))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(64))};
  torch::nn::Linear last{register_module("last", torch::nn::Linear(64, 1))};
};

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        std::vector<at::Tensor> parameters) {
  if (name == "adamw") return std::make_unique<torch::optim::AdamW>(std::move(parameters), 1e-3);
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(1e-2).momentum(0.9));
}

class Training {
 public:
  explicit Training(const char* const* words)
      : optimizer_(make_optimizer(words[0], model_.parameters())),
        snapshot_(options_of(words[1])),
        steps_(std::atoll(words[2])),
        save_every_(std::atoll(words[3])),
        step_time_(std::atoll(words[4])) {
    snapshot_.track(model_).track(*optimizer_, model_).track(scheduler_).track(sampler_);
    snapshot_.track_rng().track("epoch", epoch_);
  }

  void run() {
    // Dropout draws different numbers on each rank.
    torch::manual_seed(100 + static_cast<uint64_t>(dist::get_rank()));
    const auto from = snapshot_.resume();
    step_ = from.step;
    if (dist::is_main_process()) print_source(from);
    for (; step_ < steps_; ++epoch_) {
      sampler_.set_epoch(epoch_);
      train_epoch();
    }
    snapshot_.save(step_);
  }

  std::string hash() { return examples::hash_of(model_.module()); }

 private:
  static std::shared_ptr<Net> make_net() {
    torch::manual_seed(0);
    return std::make_shared<Net>();
  }

  static cpprun::SnapshotOptions options_of(const std::string& path) {
    if (path.ends_with(".pt")) return {.file = path};
    return {.dir = path, .keep = 2};
  }

  static void print_source(const cpprun::Resumed& from) {
    std::printf("resumed from %s at step %lld\n", cpprun::name(from.source),
                static_cast<long long>(from.step));
    std::fflush(stdout);
  }

  void train_epoch() {
    const auto share = static_cast<size_t>(kBatch / dist::get_world_size());
    while (step_ < steps_) {
      const auto batch = sampler_.next(share);
      if (!batch) return;
      cpprun::worker::fault_point(epoch_, step_);
      step(torch::tensor(std::vector<int64_t>(batch->begin(), batch->end())));
      snapshot_.maybe_save(step_, {.every_steps = save_every_});
      std::this_thread::sleep_for(step_time_);
    }
  }

  void step(const at::Tensor& chosen) {
    model_.zero_grad();
    torch::mse_loss(model_(inputs_.index_select(0, chosen)), targets_.index_select(0, chosen))
        .backward();
    optimizer_->step();
    scheduler_.step();
    cpprun::worker::heartbeat(++step_);
  }

  at::Tensor inputs_ = torch::randn({kSamples, kFeatures}, at::detail::createCPUGenerator(1));
  at::Tensor targets_ = inputs_.sum(1, true).sin();
  DistributedDataParallel<Net> model_{make_net()};
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  cpprun::optim::StepLR scheduler_{*optimizer_, {.step_size = 40, .gamma = 0.7}};
  cpprun::data::DistributedSampler sampler_{kSamples};
  int64_t epoch_ = 0, step_ = 0;
  cpprun::Snapshot snapshot_;
  const int64_t steps_, save_every_;
  const std::chrono::milliseconds step_time_;
};

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    if (args.argc != 6) {
      std::fprintf(stderr, "usage: %s sgd|adamw DIR|FILE.pt STEPS SAVE_EVERY STEP_MS\n",
                   args.argv[0]);
      return 2;
    }
    auto group = dist::init_process_group({.backend = "gloo"});
    Training training(args.argv + 1);
    training.run();
    if (dist::is_main_process()) std::printf("hash=%s\n", training.hash().c_str());
    return 0;
  });
}

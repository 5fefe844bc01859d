// The Trainer of the torchrun tutorials, with snapshots. The C++ version of
// examples/python/toy_trainer.py, with the same output and the same snapshot file.
//
//   cpprun --standalone --nproc_per_node=2 --max_restarts=3 ./ex_toy_trainer --save-every 1
//   cpprun --standalone --nproc_per_node=2 ./ex_toy_trainer 50 10
//   ./ex_toy_trainer --solo
//
// Run again, it resumes from snapshot.pt in the current folder, or in the folder of cpprun's
// --snapshot-dir. EPOCHS_RUN counts finished training epochs. Python reads the file with
// torch.load. On SIGTERM it saves a snapshot and exits with 75.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "cpprun/torch.hpp"
#include "cpprun/trainer/trainer.hpp"
#include "examples/cpp/support/hash.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace dist = cpprun::dist;

namespace {

struct Settings {
  int total_epochs = 50, save_every = 10;
  int64_t batch_size = 32;
  std::string task = "tutorial", snapshot_path = "snapshot.pt";
  bool is_solo = false, prints_params = false, prints_hash = false, prints_hashes = false;
};

Settings parse(cpprun::Args args) {
  Settings s;
  examples::Options("A simple distributed training job.")
      .add("--total-epochs,epochs", s.total_epochs, "training epochs")
      .add("--save-every,every", s.save_every, "training epochs between snapshots")
      .add("--batch_size,--batch-size", s.batch_size, "samples per worker and step")
      .add("--snapshot-path", s.snapshot_path, "snapshot file")
      .add("--task", s.task, "tutorial, or regression, which can be learned")
      .add("--solo", s.is_solo, "run as a single process, without the launcher's ranks")
      .add("--print-params", s.prints_params, "print the parameters at the end")
      .add("--hash", s.prints_hash, "print a hash of the parameters at the end")
      .add("--hash-each-epoch", s.prints_hashes, "print it on all ranks after each training epoch")
      .parse(args);
  return s;
}

struct Pairs : torch::data::datasets::Dataset<Pairs> {
  Pairs(at::Tensor in, at::Tensor out) : inputs(std::move(in)), targets(std::move(out)) {}
  torch::data::Example<> get(size_t index) override {
    const auto row = static_cast<int64_t>(index);
    return {inputs[row], targets[row]};
  }
  std::optional<size_t> size() const override { return static_cast<size_t>(inputs.size(0)); }
  at::Tensor inputs, targets;
};

// The tutorial's task has one class, so its loss is always zero; the other task fits a plane.
Pairs make_data(const std::string& task) {
  auto random = at::detail::createCPUGenerator(0);
  if (task == "tutorial") return {torch::rand({2048, 20}, random), torch::rand({2048, 1}, random)};
  if (task != "regression") throw std::invalid_argument("--task " + task + ": no such task");
  const auto inputs = torch::randn({2048, 2}, random);
  const auto noise = 0.01 * torch::randn({2048, 1}, random);
  return {inputs, inputs.matmul(torch::tensor({-2.0F, 3.4F}).view({2, 1})) + 4.2 + noise};
}

using Dataset = decltype(make_data("").map(torch::data::transforms::Stack<>()));
using Base = cpprun::Trainer<torch::nn::LinearImpl, Dataset>;

// The parts that the SDK's Trainer leaves to the program: the loss, and what to print.
class Trainer : public Base {
 public:
  Trainer(torch::nn::Linear net, Dataset data, torch::optim::Optimizer& optimizer,
          const Settings& settings)
      : Base(net.ptr(), std::move(data), optimizer,
             {.batch_size = static_cast<size_t>(settings.batch_size),
              .save_every = settings.save_every,
              .snapshot_path = settings.snapshot_path}),
        settings_(settings) {}

 protected:
  at::Tensor loss(const at::Tensor& output, const at::Tensor& targets) override {
    return settings_.task == "regression" ? torch::mse_loss(output, targets)
                                          : Base::loss(output, targets);
  }

  void end_epoch(int epoch) override {
    if (settings_.prints_hashes)
      examples::print_line("[GPU", gpu_id(), "] epoch=", epoch,
                           " hash=", examples::hash_of(model().module()));
  }

 private:
  const Settings& settings_;
};

std::string parameters(const torch::nn::Module& net) {
  std::string text;
  for (const auto& parameter : net.parameters()) {
    const auto flat = parameter.flatten();
    for (int64_t i = 0; i < flat.numel(); ++i) {
      char number[32];
      std::snprintf(number, sizeof number, "%.2f", flat[i].item<double>());
      text += (text.empty() ? "[" : ", ") + std::string(number);
    }
  }
  return text + "]";
}

dist::ProcessGroupGuard join(bool is_solo) {
  if (!is_solo) return dist::init_process_group_or_single();
  return dist::init_process_group({.world_size = 1, .rank = 0, .store = dist::make_hash_store()});
}

}  // namespace

int main(int argc, char** argv) {
  const auto run = [](cpprun::Args args) {
    const Settings settings = parse(args);
    auto group = join(settings.is_solo);

    torch::manual_seed(0);
    const auto data = make_data(settings.task);
    const torch::nn::Linear net(data.inputs.size(1), 1);
    torch::optim::SGD optimizer(net->parameters(), 1e-3);
    Trainer trainer(net, Pairs(data).map(torch::data::transforms::Stack<>()), optimizer, settings);
    trainer.train(settings.total_epochs);

    if (dist::is_main_process()) {
      if (settings.prints_params) examples::print_line("parameters: ", parameters(*net));
      if (settings.prints_hash) examples::print_line("hash=", examples::hash_of(*net));
    }
    return trainer.exit_code();
  };
  // Without an agent, which would ask the worker to stop, SIGTERM itself is the request.
  return cpprun::main(argc, argv, run, {.handles_sigterm = !cpprun::worker::has_agent()});
}

// Contrastive training: each rank compares its pairs with those of all ranks.
//
//   cpprun --standalone --nproc_per_node=2 ./ex_contrastive
#include "cpprun/torch.hpp"
#include "examples/cpp/support/hash.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace dist = cpprun::dist;
namespace F = torch::nn::functional;

struct Encoder : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return F::normalize(last(torch::relu(first(x))), F::NormalizeFuncOptions().dim(1));
  }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(12, 32))};
  torch::nn::Linear last{register_module("last", torch::nn::Linear(32, 8))};
};

// InfoNCE: of the samples of all ranks, `ours` must find its own pair. The gradient of each rank's
// loss reaches the samples of all ranks, so the batch is world size times as large.
at::Tensor contrastive_loss(const at::Tensor& ours, const at::Tensor& pairs) {
  const auto all = torch::cat(dist::nn::functional::all_gather(pairs));
  const auto first = dist::get_rank() * ours.size(0);
  const auto labels = torch::arange(first, first + ours.size(0));
  return torch::cross_entropy_loss(torch::mm(ours, all.t()) / 0.1, labels);
}

int train(cpprun::Args args) {
  int64_t steps = 30;
  examples::Options("Contrastive training over all ranks' samples.")
      .add("--steps", steps, "optimizer steps")
      .parse(args);
  auto group = dist::init_process_group_or_single({.backend = "gloo"});
  torch::manual_seed(0);
  cpprun::nn::parallel::DistributedDataParallel ddp(std::make_shared<Encoder>());
  torch::optim::SGD optimizer(ddp.parameters(), 0.1);
  auto random = at::detail::createCPUGenerator(static_cast<uint64_t>(100 + dist::get_rank()));
  for (int64_t step = 0; step < steps; ++step) {
    const auto x = torch::randn({8, 12}, random);
    const auto views = torch::cat({x, x + 0.1 * torch::randn({8, 12}, random)});
    optimizer.zero_grad();
    const auto codes = ddp(views).split(8);
    const auto loss = contrastive_loss(codes[0], codes[1]);
    loss.backward();
    examples::print_line("step ", step, " rank ", dist::get_rank(), " loss ", loss.item<float>());
    optimizer.step();
  }
  examples::print_line("weights ", dist::get_rank(), " ", examples::hash_of(ddp.module()));
  return 0;
}

int main(int argc, char** argv) { return cpprun::main(argc, argv, train); }

// SyncBatchNorm over ranks with parts of different sizes. Prints what twins/batch_norm.py computes
// with plain batch normalisation on the joined batch.
#include <optional>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/nn/sync_batch_norm.hpp"
#include "tests/sdk/nn/nets.hpp"
#include "tests/sdk/support/cases.hpp"

namespace cpprun::test {
namespace {

struct Net : torch::nn::Module {
  explicit Net(bool has_momentum) {
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 5, 3)));
    auto options = torch::nn::BatchNormOptions(5);
    if (!has_momentum) options.momentum(std::nullopt);
    norm = register_module("norm", nn::SyncBatchNorm(options));
  }
  at::Tensor forward(const at::Tensor& x) { return norm(first(x)).tanh(); }
  torch::nn::Conv2d first{nullptr};
  nn::SyncBatchNorm norm{nullptr};
};

void print_tensor(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous().view({-1});
  std::string line = name;
  for (int64_t i = 0; i < flat.numel(); ++i) line += " " + digits(flat[i].item<double>());
  print_line(line);
}

}  // namespace

// Words: the number of samples of each rank. The loss is a sum over the joined batch; DDP averages
// the gradients, so each rank multiplies its part by the number of ranks.
SDK_CASE(sync_batch_norm) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  const int rank = dist::get_rank();
  const bool has_momentum = args.back() != "cumulative";
  torch::manual_seed(3);
  nn::parallel::DistributedDataParallel ddp(std::make_shared<Net>(has_momentum));
  int64_t begin = 0;
  for (int i = 0; i < rank; ++i) begin += std::stoi(args[static_cast<size_t>(i)]);
  const int64_t size = std::stoi(args[static_cast<size_t>(rank)]);
  for (int step = 0; step < 3; ++step) {
    at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(50 + step));
    const at::Tensor joined = torch::randn({64, 3, 8, 8}, generator);
    at::Tensor x = joined.narrow(0, begin, size).clone().requires_grad_(true);
    ddp.zero_grad();
    const at::Tensor y = ddp(x);
    (y.square().sum() * dist::get_world_size()).backward();
    const std::string place = std::to_string(step) + " " + std::to_string(rank) + " ";
    print_tensor("out " + place, y);
    print_tensor("dx " + place, x.grad() / dist::get_world_size());
    for (const auto& item : ddp.module().named_parameters()) {
      print_tensor("grad " + place + item.key(), item.value().grad());
    }
    for (const auto& item : ddp.module().named_buffers())
      print_tensor("buffer " + place + item.key(), item.value());
  }
  ddp.eval();
  print_tensor("eval 3 " + std::to_string(rank), ddp(torch::ones({2, 3, 8, 8})));
  return 0;
}

}  // namespace cpprun::test

// averages: running averages of a model; twins/averages.py prints the same.
#include <torch/nn.h>
#include <torch/optim.h>

#include <cstdio>

#include "cpprun/optim/swa_utils.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

namespace swa_utils = cpprun::optim::swa_utils;

struct SwaNet : torch::nn::Module {
  SwaNet() {
    register_module("first", first);
    register_module("last", last);
    register_module("norm", norm);
  }
  at::Tensor forward(const at::Tensor& x) { return last(torch::relu(norm(first(x)))); }
  torch::nn::Linear first{5, 7}, last{7, 1};
  torch::nn::BatchNorm1d norm{7};
};

void print_state(const char* kind, int step, const torch::nn::Module& module) {
  const auto print = [&](const std::string& name, const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().to(torch::kDouble).flatten();
    std::printf("%s %d %s", kind, step, name.c_str());
    for (int64_t i = 0; i < flat.numel(); ++i) std::printf(" %.17g", flat[i].item<double>());
    std::printf("\n");
  };
  for (const auto& item : module.named_parameters()) print(item.key(), item.value());
  for (const auto& item : module.named_buffers()) print(item.key(), item.value());
}

}  // namespace

SDK_CASE(averages) {
  torch::manual_seed(1);
  SwaNet net;
  const auto copy = [] { return std::make_shared<SwaNet>(); };
  swa_utils::AveragedModel<SwaNet> mean(net, copy());
  swa_utils::AveragedModel<SwaNet> ema(net, copy(),
                                       {.multi_avg_fn = swa_utils::get_ema_multi_avg_fn(0.9)});
  swa_utils::AveragedModel<SwaNet> swa(net, copy(),
                                       {.multi_avg_fn = swa_utils::get_swa_multi_avg_fn()});
  swa_utils::AveragedModel<SwaNet> all(
      net, copy(), {.multi_avg_fn = swa_utils::get_ema_multi_avg_fn(0.5), .use_buffers = true});
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::manual_seed(2);
  for (int step = 0; step < 6; ++step) {
    sgd.zero_grad();
    const at::Tensor x = torch::randn({8, 5}), y = torch::randn({8, 1});
    torch::mse_loss(net.forward(x), y).backward();
    sgd.step();
    mean.update_parameters(net);
    ema.update_parameters(net);
    swa.update_parameters(net);
    all.update_parameters(net);
    print_state("mean", step, mean);
    print_state("ema", step, ema);
    print_state("swa", step, swa);
    print_state("all", step, all);
  }
  ema.eval();
  std::printf("forward %.17g\n", ema.forward(torch::ones({2, 5}))[0].item<double>());
  return 0;
}

// Collectives with gradients: values and gradients of each call, as twins/functional.py prints
// them.
#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/nn/functional.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

namespace functional = dist::nn::functional;

void print_numbers(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous().view({-1});
  std::string line = name + " " + std::to_string(dist::get_rank());
  char text[40];
  for (int64_t i = 0; i < flat.numel(); ++i) {
    std::snprintf(text, sizeof text, " %.17g", flat[i].item<double>());
    line += text;
  }
  print_line(line);
}

// Weights that differ by rank, so that a gradient that goes to the wrong rank shows.
at::Tensor weighted(const at::Tensor& tensor) {
  const at::Tensor weights = torch::arange(tensor.numel(), torch::kFloat).view(tensor.sizes());
  return (tensor.sin() * (weights + 1 + dist::get_rank())).sum();
}

at::Tensor weighted(const std::vector<at::Tensor>& tensors) {
  at::Tensor sum = torch::zeros({});
  for (size_t i = 0; i < tensors.size(); ++i) {
    sum = sum + weighted(tensors[i]) * static_cast<double>(i + 1);
  }
  return sum;
}

// The same on each rank as in the twin.
class Inputs {
 public:
  at::Tensor draw(at::IntArrayRef shape) {
    all_.push_back(torch::randn(shape, generator_).requires_grad_());
    return all_.back();
  }
  std::vector<at::Tensor> draw_each(int64_t count, at::IntArrayRef shape) {
    std::vector<at::Tensor> each;
    for (int64_t i = 0; i < count; ++i) each.push_back(draw(shape));
    return each;
  }
  // The gradients of the loss, and those of a function of these gradients.
  void print_gradients(const std::string& name, const at::Tensor& loss) {
    print_numbers(name + " loss", loss);
    const auto first = torch::autograd::grad({loss}, all_, {}, /*retain_graph=*/true,
                                             /*create_graph=*/true);
    at::Tensor again = torch::zeros({});
    for (const at::Tensor& gradient : first) {
      print_numbers(name + " grad", gradient);
      again = again + gradient.square().sum();
    }
    for (const at::Tensor& gradient : torch::autograd::grad({again}, all_)) {
      print_numbers(name + " second", gradient);
    }
    all_.clear();
  }

 private:
  at::Generator generator_ =
      at::detail::createCPUGenerator(static_cast<uint64_t>(50 + dist::get_rank()));
  std::vector<at::Tensor> all_;
};

std::vector<at::Tensor> empty_each(int64_t count, at::IntArrayRef shape) {
  std::vector<at::Tensor> each;
  for (int64_t i = 0; i < count; ++i) each.push_back(torch::empty(shape));
  return each;
}

}  // namespace

SDK_CASE(functional) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  const int64_t world = dist::get_world_size(), rank = dist::get_rank();
  Inputs inputs;
  const at::Tensor turned = inputs.draw({3, 2}).t();  // not contiguous
  inputs.print_gradients("all_gather", weighted(functional::all_gather(turned)));
  inputs.print_gradients("all_reduce", weighted(functional::all_reduce(inputs.draw({4}))));
  inputs.print_gradients(
      "reduce_scatter",
      weighted(functional::reduce_scatter(torch::empty({2, 2}), inputs.draw_each(world, {2, 2}))));
  inputs.print_gradients("all_to_all", weighted(functional::all_to_all(
                                           empty_each(world, {3}), inputs.draw_each(world, {3}))));
  // Rank r sends r + 1 rows to each rank.
  std::vector<int64_t> takes;
  for (int64_t i = 0; i < world; ++i) takes.push_back(i + 1);
  const at::Tensor rows = inputs.draw({world * (rank + 1), 2});
  const at::Tensor output = torch::empty({world * (world + 1) / 2, 2});
  const std::vector<int64_t> sends(static_cast<size_t>(world), rank + 1);
  inputs.print_gradients("all_to_all_single",
                         weighted(functional::all_to_all_single(output, rows, takes, sends)));
  const auto pair = dist::new_group({0, 1});
  if (pair.rank() >= 0) {
    inputs.print_gradients("pair", weighted(functional::all_gather(inputs.draw({2}), pair)));
  }
  return 0;
}

// What Python lacks on gloo: AVG, and groups of other ranks than the first ones.
SDK_CASE(functional_beyond) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  const auto pair = dist::new_group({0, 2});
  if (pair.rank() >= 0) {
    const at::Tensor own = torch::ones({1}).requires_grad_();
    const auto all = functional::all_gather(own, pair);
    ((all[0] + 2 * all[1]) * (dist::get_rank() + 1)).backward();
    print_line("pair " + std::to_string(own.grad().item<double>()));
  }
  const at::Tensor x = torch::ones({1}).requires_grad_();
  functional::all_reduce(x * dist::get_rank(), dist::ReduceOp::AVG).backward();
  print_line("gradient " + std::to_string(x.grad().item<double>()));
  return 0;
}

}  // namespace cpprun::test

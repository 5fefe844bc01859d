// Collectives of several tensors in one call, as twins/coalesced.py makes them.
#include <cmath>

#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

using dist::ReduceOp;
using Tensors = std::vector<at::Tensor>;

struct Dtype {
  const char* name;
  at::ScalarType type;
};
constexpr Dtype kDtypes[] = {{"float32", at::kFloat},
                             {"bfloat16", at::kBFloat16},
                             {"int64", at::kLong},
                             {"complex64", at::kComplexFloat}};

std::string numbers_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.is_complex() ? at::view_as_real(tensor.contiguous()) : tensor;
  const at::Tensor flat = plain.to(at::kDouble).contiguous().view({-1});
  std::string text;
  char number[40];
  for (int64_t i = 0; i < flat.numel(); ++i) {
    std::snprintf(number, sizeof number, " %.17g", flat[i].item<double>());
    text += number;
  }
  return text;
}

void print_all(const std::string& what, const Tensors& tensors) {
  std::string line = "rank " + std::to_string(dist::get_rank()) + " " + what;
  for (const at::Tensor& tensor : tensors) line += numbers_of(tensor) + ";";
  print_line(line);
}

// Values whose sum depends on the order of the additions.
at::Tensor values(at::IntArrayRef shape, at::ScalarType type, double scale) {
  const int64_t count = c10::multiply_integers(shape);
  const at::Tensor line = torch::arange(1, count + 1, at::kDouble);
  return (torch::sin(line * scale * (dist::get_rank() + 1)) * 100).to(type).view(shape);
}

Tensors three_of(at::ScalarType type, int64_t rows) {
  return {values({rows, 2}, type, 0.3), values({rows}, type, 0.7),
          values({3 * rows, 3}, type, 1.1)};
}

void calls_with(const Dtype& dtype) {
  const std::string name = std::string(" ") + dtype.name;
  const int world = dist::get_world_size();
  for (const ReduceOp op : {ReduceOp::SUM, ReduceOp::AVG, ReduceOp::MAX}) {
    const bool is_float = at::isFloatingType(dtype.type);
    if ((op == ReduceOp::AVG && !is_float) ||
        (op == ReduceOp::MAX && at::isComplexType(dtype.type))) {
      continue;
    }
    const std::string what = std::string(" ") + dist::name(op) + name;
    const Tensors reduced = three_of(dtype.type, 2);
    dist::all_reduce_coalesced(reduced, op);
    print_all("all_reduce" + what, reduced);
    if (at::isComplexType(dtype.type)) continue;  // Python's call refuses them
    const Tensors parts = {at::empty({2, 2}, dtype.type), at::empty({2}, dtype.type)};
    dist::reduce_scatter_tensor_coalesced(
        parts, {values({2 * world, 2}, dtype.type, 0.3), values({2 * world}, dtype.type, 0.7)}, op);
    print_all("reduce_scatter" + what, parts);
  }
  const Tensors gathered = {at::empty({2 * world, 2}, dtype.type), at::empty({world}, dtype.type)};
  dist::all_gather_into_tensor_coalesced(
      gathered, {values({2, 2}, dtype.type, 0.3), values({1}, dtype.type, 0.7)});
  print_all("all_gather" + name, gathered);
}

void asynchronous_calls() {
  const Tensors reduced = three_of(at::kFloat, 4);
  auto work = dist::all_reduce_coalesced(reduced, ReduceOp::SUM, {.async_op = true});
  const Tensors gathered = {at::empty({2 * dist::get_world_size()})};
  auto later = dist::all_gather_into_tensor_coalesced(gathered, {values({2}, at::kFloat, 0.9)},
                                                      {.async_op = true});
  later.wait();
  work.then([reduced] { reduced[1].add_(0.5); }).wait();
  print_all("async", {reduced[0], reduced[1], reduced[2], gathered[0]});
}

}  // namespace

SDK_CASE(coalesced) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  for (const Dtype& dtype : kDtypes) calls_with(dtype);
  asynchronous_calls();
  return 0;
}

// What Python's calls do not take: tensors that are not contiguous, complex numbers in
// reduce_scatter; and wrong arguments.
SDK_CASE(coalesced_beyond_python) {
  const auto group = dist::init_process_group({.backend = "gloo"});
  const int world = dist::get_world_size();
  dist::set_debug_checks(true);
  const Tensors columns = {at::zeros({2, 3}).t().fill_(dist::get_rank() + 1),
                           at::ones({4, 2}).select(1, 1)};
  dist::all_reduce_coalesced(columns);
  print_all("columns", columns);
  const at::Tensor part = at::empty({1}, at::kComplexFloat);
  auto work = dist::reduce_scatter_tensor_coalesced(
      {part}, {at::full({world}, c10::complex<float>(1, 2), at::kComplexFloat)}, ReduceOp::SUM,
      {.async_op = true});
  print_line(work.wait_for(std::chrono::minutes(5)) ? "ended" : "still running");
  print_all("complex", {part});
  const auto refused = [](const std::function<void()>& call) { printing_errors(call); };
  refused([] { dist::all_reduce_coalesced({}); });
  refused([] { dist::all_reduce_coalesced({at::ones({1}), at::ones({1}, at::kLong)}); });
  refused([] { dist::all_reduce_coalesced({at::ones({1}), at::ones({1}).expand({4})}); });
  refused([] {
    dist::all_gather_into_tensor_coalesced({at::ones({8})}, {at::ones({1}), at::ones({1})});
  });
  refused([] { dist::all_gather_into_tensor_coalesced({at::ones({3})}, {at::ones({2})}); });
  refused([] { dist::reduce_scatter_tensor_coalesced({at::ones({2})}, {at::ones({3})}); });
  refused([] { dist::all_reduce_coalesced({at::ones({dist::get_rank() + 1})}); });
  return 0;
}

}  // namespace cpprun::test

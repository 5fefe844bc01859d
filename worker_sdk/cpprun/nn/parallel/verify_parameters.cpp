#include "cpprun/nn/parallel/verify_parameters.hpp"

#include <sstream>
#include <string>

#include "cpprun/dist/errors.hpp"

namespace cpprun::nn::parallel {
namespace {

std::vector<int64_t> layout_of(const std::vector<at::Tensor>& parameters) {
  std::vector<int64_t> numbers;
  for (const at::Tensor& each : parameters) {
    numbers.insert(numbers.end(), each.sizes().begin(), each.sizes().end());
    numbers.insert(numbers.end(), each.strides().begin(), each.strides().end());
  }
  return numbers;
}

}  // namespace

void verify_counts(c10d::ProcessGroup& group, const std::vector<at::Tensor>& parameters) {
  const auto own = static_cast<int64_t>(parameters.size());
  // On the parameters' device, which the group's backend serves.
  const auto here = at::TensorOptions(at::kLong).device(parameters.front().device());
  std::vector<at::Tensor> input{at::full({1}, own, here)};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < group.getSize(); ++rank) {
    outputs[0].push_back(at::empty_like(input[0]));
  }
  group.allgather(outputs, input)->wait();
  for (int rank = 0; rank < group.getSize(); ++rank) {
    const auto theirs = outputs[0][static_cast<size_t>(rank)].item<int64_t>();
    if (theirs == own) continue;
    throw dist::DistMismatchError("DistributedDataParallel: rank " +
                                  std::to_string(group.getRank()) + " has " + std::to_string(own) +
                                  " parameters, rank " + std::to_string(rank) + " has " +
                                  std::to_string(theirs));
  }
}

void verify_shapes(c10d::ProcessGroup& group, const std::vector<at::Tensor>& parameters) {
  const at::Tensor own = at::tensor(layout_of(parameters), at::kLong);
  std::vector<at::Tensor> first{own.to(parameters.front().device(), /*non_blocking=*/false,
                                       /*copy=*/true)};
  group.broadcast(first)->wait();
  if (at::equal(first[0].cpu(), own)) return;
  std::ostringstream sizes;
  for (const at::Tensor& each : parameters) sizes << " " << each.sizes();
  throw dist::DistMismatchError("DistributedDataParallel: the parameters of rank " +
                                std::to_string(group.getRank()) +
                                " have other sizes or strides than those of rank 0:" + sizes.str());
}

}  // namespace cpprun::nn::parallel

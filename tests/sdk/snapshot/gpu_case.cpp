// gpu_save: saves a module on a GPU while its tensors change, and reads what was saved.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;

constexpr int64_t kNumbers = 64 << 20;  // 256 MiB: more than the two buffers of a copy

struct Big : torch::nn::Module {
  explicit Big(double value)
      : weight(register_parameter("weight", at::full({kNumbers}, value, at::kCUDA))) {}
  at::Tensor weight;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Saves what is queued now, and queues changes behind it. Returns how long save() took, in ms.
double save(Snapshot& snapshot, Big& big, int64_t step, const at::Tensor& expected) {
  for (int i = 0; i < 100; ++i) big.weight.add_(1);
  big.weight.copy_(expected);
  torch::cuda::synchronize();  // so that the time is that of the save
  for (int i = 0; i < 10; ++i) big.weight.add_(1);
  big.weight.copy_(expected);
  const auto start = std::chrono::steady_clock::now();
  snapshot.save(step);
  const double took = milliseconds_since(start);
  for (int i = 0; i < 100; ++i) big.weight.mul_(0.5);
  snapshot.wait();
  return took;
}

}  // namespace

SDK_CASE(gpu_save) {
  if (!dist::is_nccl_available()) throw std::runtime_error("there is no GPU");
  const auto group = dist::init_process_group_or_single();
  const at::NoGradGuard no_grad;
  auto big = std::make_shared<Big>(0);
  Snapshot snapshot({.dir = "gpu-snapshots"});
  snapshot.track(big);
  at::Tensor expected;
  std::string pauses;
  for (int64_t step = 1; step <= 3; ++step) {
    expected = at::randn({kNumbers}, at::kCUDA);
    pauses += " " + std::to_string(save(snapshot, *big, step, expected));
  }
  auto again = std::make_shared<Big>(7);
  Snapshot reader({.dir = "gpu-snapshots"});
  reader.track(again);
  const auto from = reader.resume();
  const bool is_equal = at::equal(again->weight, expected) && !at::equal(big->weight, expected);
  std::printf("%s from step %lld; save() took, in ms:%s\n", is_equal ? "equal" : "DIFFERENT",
              static_cast<long long>(from.step), pauses.c_str());
  return 0;
}

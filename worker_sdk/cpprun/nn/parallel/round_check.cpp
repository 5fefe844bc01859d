#include "cpprun/nn/parallel/round_check.hpp"

#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <memory>

#include "cpprun/dist/group/round.hpp"

namespace cpprun::nn::parallel {
namespace {

// Queues the check behind the Reducer's own callback, which waits for the sums: the engine runs
// callbacks in the order of their queue, also those that callbacks queue.
void check_after_backward(c10::Device device) {
  torch::autograd::Engine::get_default_engine().queue_callback([device] {
    torch::autograd::Engine::get_default_engine().queue_callback(
        [device] { dist::check_round(device); });
  });
}

}  // namespace

RoundCheck::RoundCheck(const std::vector<at::Tensor>& parameters) {
  const auto newest = std::make_shared<std::atomic<int>>(-1);  // backward that has queued the check
  for (const at::Tensor& each : parameters) {
    const unsigned number = each.register_hook([newest, device = each.device()](const at::Tensor&) {
      const int task = torch::autograd::get_current_graph_task_id();
      if (newest->exchange(task) != task) check_after_backward(device);
    });
    hooks_.emplace_back(each, number);
  }
}

RoundCheck::~RoundCheck() {
  for (const auto& [parameter, number] : hooks_) parameter.remove_hook(number);
}

}  // namespace cpprun::nn::parallel

#include "cpprun/trainer/trainer_core.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/optim/clip_grad.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/faults.hpp"

namespace cpprun::detail {
namespace {

// In one piece, so that lines of several ranks on one terminal stay whole.
void print_line(std::FILE* out, const std::string& line) {
  std::fputs((line + '\n').c_str(), out);
  std::fflush(out);
}

int64_t batches_of(size_t samples, size_t batch_size) {
  return static_cast<int64_t>((samples + batch_size - 1) / batch_size);
}

}  // namespace

TrainerCore::TrainerCore(const TrainerOptions& options)
    : options_(options),
      gpu_id_(dist::get_local_rank()),
      device_(dist::local_device()),
      is_master_(dist::is_master()) {
  if (options.batch_size == 0) throw std::invalid_argument("the Trainer's batch_size is 0");
  if (options.accumulate < 1) {
    throw std::invalid_argument("the Trainer's accumulate is " +
                                std::to_string(options.accumulate) + ": it must be at least 1");
  }
}

void TrainerCore::announce() {
  if (!is_announced_ && is_master_ && !options_.is_quiet) {
    const auto world = static_cast<size_t>(dist::get_world_size());
    const auto accumulate = static_cast<size_t>(options_.accumulate);
    std::string text = "effective batch size " +
                       std::to_string(world * options_.batch_size * accumulate) + " (" +
                       std::to_string(world) + " ranks x " + std::to_string(options_.batch_size);
    if (accumulate > 1) text += " x " + std::to_string(accumulate) + " batches";
    print_line(stderr, text + ')');
  }
  is_announced_ = true;
  worker::mark_ready();
}

void TrainerCore::begin_epoch(int epoch, size_t samples, size_t remaining) {
  epoch_ = epoch;
  batches_ = batches_of(samples, options_.batch_size);
  at_batch_ = first_batch_ = batches_ - batches_of(remaining, options_.batch_size);
  if (options_.is_quiet) return;
  print_line(stdout, "[GPU" + std::to_string(gpu_id_) + "] Epoch " + std::to_string(epoch) +
                         " | Batchsize: " + std::to_string(std::min(options_.batch_size, samples)) +
                         " | Steps: " + std::to_string(batches_));
}

void TrainerCore::begin_batch() {
  worker::fault_point(epoch_, epoch_ * batches_ + at_batch_);
}

bool TrainerCore::end_batch() {
  ++at_batch_;
  worker::heartbeat(epoch_ * batches_ + at_batch_);
  const bool is_time =
      options_.stop_check_batches > 0 && at_batch_ % options_.stop_check_batches == 0;
  return is_time && is_stop_agreed();
}

Window TrainerCore::window() const {
  const int64_t first = at_batch_ - (at_batch_ - first_batch_) % options_.accumulate;
  const int64_t behind = std::min(first + options_.accumulate, batches_);
  return {at_batch_ == first, at_batch_ + 1 == behind, behind - first};
}

bool TrainerCore::is_stop_agreed() const {
  at::Tensor stop = at::full({1}, worker::should_stop() ? 1 : 0, at::TensorOptions(at::kInt));
  if (dist::get_world_size() > 1) {
    stop = stop.to(device_);
    dist::all_reduce(stop, dist::ReduceOp::MAX);
  }
  return stop.item<int>() != 0;
}

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& targets) {
  return at::cross_entropy_loss(output, targets);
}

void step_optimizer(torch::optim::Optimizer& optimizer, const TrainerOptions& options) {
  if (options.max_grad_norm) {
    std::vector<at::Tensor> parameters;
    for (const auto& group : optimizer.param_groups()) {
      parameters.insert(parameters.end(), group.params().begin(), group.params().end());
    }
    optim::clip_grad_norm_(parameters, *options.max_grad_norm);
  }
  optimizer.step();
  if (options.scheduler && options.schedules_batches) options.scheduler->step();
}

}  // namespace cpprun::detail

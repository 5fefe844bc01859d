#include "cpprun/trainer/trainer_core.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/optim/clip_grad.hpp"
#include "cpprun/snapshot/save_schedule.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/faults.hpp"
#include "cpprun/worker/snapshot_notice.hpp"

namespace cpprun::detail {
namespace {

// One write per line, so that lines of several ranks do not mix on a terminal.
void print_line(std::FILE* out, const std::string& line) {
  std::fputs((line + '\n').c_str(), out);
  std::fflush(out);
}

// The tutorial prints the path as it was given.
std::string shown(const std::string& path) {
  const std::string folder = std::filesystem::current_path().string() + '/';
  return path.starts_with(folder) ? path.substr(folder.size()) : path;
}

constexpr double kStopInterval = 10;  // seconds; PollSchedule checks ten times as often

int64_t batches_of(size_t samples, size_t batch_size) {
  return static_cast<int64_t>((samples + batch_size - 1) / batch_size);
}

SnapshotOptions snapshot_options(const TrainerOptions& options) {
  if (options.snapshot_dir.empty()) return {.file = options.snapshot_path};
  return {.dir = options.snapshot_dir, .keep = options.keep_snapshots};
}

}  // namespace

TrainerCore::TrainerCore(const TrainerOptions& options)
    : options_(options),
      gpu_id_(dist::get_local_rank()),
      device_(dist::local_device()),
      is_main_process_(dist::is_main_process()),
      snapshot_(snapshot_options(options)) {
  if (options.batch_size == 0) throw std::invalid_argument("the Trainer's batch_size is 0");
  if (options.accumulate < 1) {
    throw std::invalid_argument("the Trainer's accumulate is " +
                                std::to_string(options.accumulate) + ": it must be at least 1");
  }
  snapshot::check(options.save_when);
  worker::heartbeat(0, worker::Phase::Starting);
}

void TrainerCore::announce() {
  if (!is_announced_ && is_main_process_ && options_.verbose) {
    const auto world = static_cast<size_t>(dist::get_world_size());
    const auto accumulate = static_cast<size_t>(options_.accumulate);
    std::string text = "effective batch size " +
                       std::to_string(world * options_.batch_size * accumulate) + " (" +
                       std::to_string(world) + " ranks x " + std::to_string(options_.batch_size);
    if (accumulate > 1) text += " x " + std::to_string(accumulate) + " batches";
    print_line(stderr, text + ')');
  }
  if (std::exchange(is_announced_, true)) return;
  worker::report_ready();
  // The first batch may take as long as what comes before it.
  worker::heartbeat(0, worker::Phase::Starting);
}

void TrainerCore::begin_epoch(int epoch, size_t samples, size_t remaining) {
  epoch_ = epoch;
  batches_ = batches_of(samples, options_.batch_size);
  at_batch_ = first_batch_ = batches_ - batches_of(remaining, options_.batch_size);
  if (!options_.verbose) return;
  print_line(stdout, "[GPU" + std::to_string(gpu_id_) + "] Epoch " + std::to_string(epoch) +
                         " | Batchsize: " + std::to_string(std::min(options_.batch_size, samples)) +
                         " | Steps: " + std::to_string(batches_));
}

void TrainerCore::track(torch::optim::Optimizer& optimizer, const torch::nn::Module& model,
                        data::DistributedSampler* sampler, int& epochs_run) {
  snapshot_.track("optimizer", optimizer, model).track_rng().track("epochs_run", epochs_run);
  if (sampler != nullptr) snapshot_.track(*sampler);
  if (options_.scheduler != nullptr) snapshot_.track(*options_.scheduler);
  worker::enable_graceful_stop();
}

void TrainerCore::set_continues_within_epochs(bool continues) {
  const SaveWhen& when = options_.save_when;
  if (!continues && (when.every_steps > 0 || when.every.count() > 0 || when.auto_interval)) {
    throw std::invalid_argument(
        "the Trainer's save_when saves within an epoch, but the sampler's position would be lost: "
        "the sampler has no load_state(), or it has no mark_consumed() and `workers` draw ahead");
  }
  continues_within_epochs_ = continues;
}

bool TrainerCore::resume(const int& epochs_run) {
  const Resumed from = snapshot_.resume();
  if (!from) return false;
  step_ = from.step;
  if (!options_.verbose) return true;
  print_line(stdout, "loading snapshot");
  print_line(stdout, "Resuming training from snapshot at Epoch " + std::to_string(epochs_run));
  return true;
}

void TrainerCore::save(int epoch) {
  is_saved_ = snapshot_.save(step_);
  if (!is_saved_ || !is_main_process_ || !options_.verbose) return;
  print_line(stdout, "Epoch " + std::to_string(epoch) + " | Training snapshot saved at " +
                         shown(snapshot_.last_path()));
}

void TrainerCore::print_done(int max_epochs) const {
  if (!options_.verbose) return;
  print_line(stdout,
             "Nothing to do: all " + std::to_string(max_epochs) + " training epochs are done");
}

void TrainerCore::begin_batch() { worker::fault_point(epoch_, epoch_ * batches_ + at_batch_); }

bool TrainerCore::end_batch() {
  const bool is_step = window().is_last;
  ++at_batch_;
  worker::heartbeat(epoch_ * batches_ + at_batch_);
  if (!is_step) return false;  // a snapshot cannot hold partly accumulated gradients
  ++step_;
  if (!continues_within_epochs_) return false;
  snapshot_.maybe_save(step_, options_.save_when);
  return poll_stop();
}

// All ranks check at the same steps: each check also agrees on the step of the next one.
bool TrainerCore::poll_stop() {
  if (options_.stop_check_batches < 0 || !stop_polls_.is_due(step_)) return false;
  const double now =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  const int64_t ahead = std::max<int64_t>(options_.stop_check_batches / options_.accumulate, 1);
  const int64_t next = options_.stop_check_batches > 0
                           ? step_ + ahead
                           : stop_polls_.next_poll(step_, now, kStopInterval);
  const Agreed agreed = agree(next);
  stop_polls_.set_next_poll(agreed.number);
  return agreed.is_stop;
}

Window TrainerCore::window() const {
  const int64_t first = at_batch_ - (at_batch_ - first_batch_) % options_.accumulate;
  const int64_t behind = std::min(first + options_.accumulate, batches_);
  return {at_batch_ == first, at_batch_ + 1 == behind, behind - first};
}

TrainerCore::Agreed TrainerCore::agree(int64_t number) const {
  const int64_t stops = worker::should_stop() ? 1 : 0;
  if (dist::get_world_size() == 1) return {stops != 0, number};
  at::Tensor both = at::tensor({stops, number}, at::TensorOptions(at::kLong)).to(device_);
  dist::all_reduce(both, dist::ReduceOp::MAX);
  both = both.cpu();
  return {both[0].item<int64_t>() != 0, both[1].item<int64_t>()};
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

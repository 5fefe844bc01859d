// TrainerCore: what of a Trainer does not depend on its module and data. Lines, steps, windows of
// accumulated gradients, heartbeat, faults on demand, requests to stop.
//
// One thread. Users meet it only as TrainerOptions and through Trainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/nn/parallel/ddp_options.hpp"
#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun {

struct TrainerOptions {
  size_t batch_size = 32;  // of each rank
  int save_every = 10;     // training epochs; 0: never
  std::string snapshot_path = "snapshot.pt";
  size_t workers = 0;      // threads that load data; 0: the training thread does
  int64_t accumulate = 1;  // batches per optimizer step; gradients are their mean
  std::optional<double> max_grad_norm = {};
  optim::LRScheduler* scheduler = nullptr;  // not owned; steps after each training epoch
  bool schedules_batches = false;           // ... or after each optimizer step
  // A request to stop is looked at after each training epoch; this also after so many batches,
  // for the price of a small all-reduce each time. 0: not.
  int64_t stop_check_batches = 0;
  bool is_quiet = false;  // no lines
  data::DistributedSamplerOptions sampler = {};
  nn::parallel::DdpOptions ddp = {};
};

namespace detail {

// Where a batch stands among those whose gradients are added up.
struct Window {
  bool is_first = true, is_last = true;
  int64_t batches = 1;  // in all
};

class TrainerCore {
 public:
  // Throws std::invalid_argument for options that can't work.
  explicit TrainerCore(const TrainerOptions& options);

  int gpu_id() const { return gpu_id_; }
  c10::Device device() const { return device_; }
  bool is_master() const { return is_master_; }

  // "effective batch size 128 (4 ranks x 32)", on stderr, once, by global rank 0; says to the agent
  // that this rank is ready.
  void announce();
  // "[GPU0] Epoch 0 | Batchsize: 32 | Steps: 32"; `samples` of this rank per training epoch, of
  // which `remaining` are still to come.
  void begin_epoch(int epoch, size_t samples, size_t remaining);
  // Before a batch: the fault that CPPRUN_FAULTS asks for. After it: heartbeat; true if all ranks
  // are to stop now.
  void begin_batch();
  bool end_batch();
  Window window() const;
  // True if any rank was asked to stop. All ranks must call it at the same place.
  bool is_stop_agreed() const;

 private:
  const TrainerOptions& options_;
  int gpu_id_;
  c10::Device device_;
  bool is_master_, is_announced_ = false;
  int epoch_ = 0;
  int64_t batches_ = 0, at_batch_ = 0;  // of this training epoch: in all, done
  int64_t first_batch_ = 0;             // of a training epoch that goes on in the middle
};

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& targets);
// Clips, steps, schedules, as the options say.
void step_optimizer(torch::optim::Optimizer& optimizer, const TrainerOptions& options);

}  // namespace detail
}  // namespace cpprun

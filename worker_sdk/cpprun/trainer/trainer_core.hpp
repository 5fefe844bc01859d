// TrainerCore: what of a Trainer does not depend on its module and data. Lines, steps, windows of
// accumulated gradients, heartbeat, faults on demand, requests to stop, snapshots.
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
#include "cpprun/snapshot/save_interval.hpp"
#include "cpprun/snapshot/snapshot.hpp"

namespace cpprun {

struct TrainerOptions {
  size_t batch_size = 32;  // of each rank
  // A snapshot after each so many training epochs, the first and the last included; 0: only on a
  // request to stop.
  int save_every = 10;
  SaveWhen save_when = {};  // and within training epochs, without waiting for the disk
  // One file, as in the tutorial; or a folder, if it is given here or by cpprun's --snapshot-dir.
  std::string snapshot_path = "snapshot.pt";
  std::string snapshot_dir = {};
  int keep_snapshots = 3;  // of a folder
  size_t workers = 0;      // threads that load data; 0: the training thread does
  int64_t accumulate = 1;  // batches per optimizer step; gradients are their mean
  std::optional<double> max_grad_norm = {};
  optim::LRScheduler* scheduler = nullptr;  // not owned; steps after each training epoch
  bool schedules_batches = false;           // ... or after each optimizer step
  // Batches between two looks whether any rank was asked to stop, each a small all-reduce. 0: as
  // many as make about a second; negative: only after each training epoch.
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
  bool is_main_process() const { return is_main_process_; }

  // "effective batch size 128 (4 ranks x 32)", on stderr, once, by global rank 0; says to the agent
  // that this rank is ready.
  void announce();
  // "[GPU0] Epoch 0 | Batchsize: 32 | Steps: 32"; `samples` of this rank per training epoch, of
  // which `remaining` are still to come.
  void begin_epoch(int epoch, size_t samples, size_t remaining);

  // What is kept beside the model. `sampler` may be null. All that follows is for all ranks, at the
  // same place.
  void track(torch::optim::Optimizer& optimizer, const torch::nn::Module& model,
             data::DistributedSampler* sampler, int& epochs_run);
  Snapshot& snapshot() { return snapshot_; }
  // "loading snapshot", "Resuming training from snapshot at Epoch 2". False: there is none.
  bool resume(const int& epochs_run);
  // "Epoch 1 | Training snapshot saved at snapshot.pt", by global rank 0.
  void save(int epoch);
  bool is_saved() const { return is_saved_; }  // the last one
  void say_done(int max_epochs) const;

  // Before a batch: the fault that CPPRUN_FAULTS asks for. After it: heartbeat; true if all ranks
  // are to stop now.
  void begin_batch();
  bool end_batch();
  Window window() const;
  // True if any rank was asked to stop. All ranks must call it at the same place.
  bool is_stop_agreed() const { return agree(0).is_stop; }

 private:
  struct Agreed {
    bool is_stop;
    int64_t number;  // the greatest of all ranks'
  };
  Agreed agree(int64_t number) const;
  bool look_for_stop();

  const TrainerOptions& options_;
  int gpu_id_;
  c10::Device device_;
  bool is_main_process_, is_announced_ = false, is_saved_ = false;
  Snapshot snapshot_;
  int64_t step_ = 0;  // of the optimizer, over all runs
  int epoch_ = 0;
  int64_t batches_ = 0, at_batch_ = 0;  // of this training epoch: in all, done
  snapshot::PollSchedule look_out_;     // for requests to stop
  int64_t first_batch_ = 0;             // of a training epoch that goes on in the middle
};

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& targets);
// Clips, steps, schedules, as the options say.
void step_optimizer(torch::optim::Optimizer& optimizer, const TrainerOptions& options);

}  // namespace detail
}  // namespace cpprun

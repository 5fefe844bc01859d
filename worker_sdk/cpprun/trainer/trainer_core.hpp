/// @file
/// TrainerOptions, and TrainerCore: the part of Trainer that does not depend on the types of module
/// and data (printed lines, steps, gradient accumulation, heartbeats, fault injection, stop
/// requests, snapshots). Users see only TrainerOptions. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/nn/parallel/ddp_options.hpp"
#include "cpprun/optim/lr_scheduler.hpp"
#include "cpprun/snapshot/poll_schedule.hpp"
#include "cpprun/snapshot/snapshot.hpp"

namespace cpprun {

/// Options of Trainer.
struct TrainerOptions {
  size_t batch_size = 32;  ///< samples per rank and batch
  /// Saves a snapshot after epochs 0, save_every, 2 * save_every ..., and after the last. 0: only
  /// on a stop request.
  int save_every = 10;
  /// Also saves within epochs, without waiting for the disk; disk_every and disk_every_steps keep
  /// some of these saves in memory. Those after epochs are always written to disk.
  SaveWhen save_when = {};
  /// One file, as in the tutorial. snapshot_dir or cpprun's --snapshot-dir replaces it by a folder.
  std::string snapshot_path = "snapshot.pt";
  /// A folder for snapshots, `DIR/step-N/`; replaces snapshot_path. Empty: one file.
  std::string snapshot_dir = {};
  int keep_snapshots = 3;  ///< newest snapshots to keep; folders only
  size_t workers = 0;      ///< threads that load data; 0: the training thread loads
  int64_t accumulate = 1;  ///< batches per optimizer step; their gradients are averaged
  /// Clip the total norm of the gradients to this before each optimizer step; empty: no clipping.
  std::optional<double> max_grad_norm = {};
  optim::LRScheduler* scheduler = nullptr;  ///< not owned; steps after each epoch
  bool schedules_batches = false;           ///< ... or after each optimizer step
  /// Batches between two checks for a stop request of any rank; each check is a small all-reduce.
  /// 0: about one check per second; negative: only after each epoch.
  int64_t stop_check_batches = 0;
  bool verbose = true;  ///< prints the tutorial's lines
  /// Of the Trainer's own DistributedSampler; no effect with a sampler of the caller.
  data::DistributedSamplerOptions sampler = {};
  nn::parallel::DdpOptions ddp = {};  ///< of the Trainer's DistributedDataParallel
};

namespace detail {

// Position of a batch among the batches of one optimizer step.
struct Window {
  bool is_first = true, is_last = true;
  int64_t batches = 1;  // of the optimizer step
};

class TrainerCore {
 public:
  // Throws std::invalid_argument for invalid options. Reports to the agent that no step is made
  // yet, so that a stop request before the first one loses nothing.
  explicit TrainerCore(const TrainerOptions& options);

  int gpu_id() const { return gpu_id_; }
  c10::Device device() const { return device_; }

  // Rank 0 prints once "effective batch size 128 (4 ranks x 32)" on stderr; every rank reports to
  // its agent that it is ready.
  void announce();
  // Prints "[GPU0] Epoch 0 | Batchsize: 32 | Steps: 32". `samples`: of this rank per epoch;
  // `remaining`: those of them that this epoch has still to train on.
  void begin_epoch(int epoch, size_t samples, size_t remaining);

  // Tracks everything but the model. `sampler` may be null. All ranks call this and the following
  // methods in the same order.
  void track(torch::optim::Optimizer& optimizer, const torch::nn::Module& model,
             data::DistributedSampler* sampler, int& epochs_run);
  Snapshot& snapshot() { return snapshot_; }
  // False: save and stop between epochs only. Throws std::invalid_argument if options.save_when
  // demands otherwise.
  void set_continues_within_epochs(bool continues);
  // Prints "Resuming training from snapshot at Epoch 2". False: there is no snapshot.
  bool resume(const int& epochs_run);
  // Rank 0 prints "Epoch 1 | Training snapshot saved at snapshot.pt".
  void save(int epoch);
  bool is_saved() const { return is_saved_; }  // by the last save()
  void print_done(int max_epochs) const;

  // begin_batch() injects the faults of CPPRUN_FAULTS. end_batch() sends a heartbeat and may save;
  // true: all ranks stop now.
  void begin_batch();
  bool end_batch();
  Window window() const;
  // True if any rank was asked to stop.
  bool is_stop_agreed() const { return agree(0).is_stop; }

 private:
  struct Agreed {
    bool is_stop;
    int64_t number;  // maximum over all ranks
  };
  Agreed agree(int64_t number) const;
  bool poll_stop();

  const TrainerOptions& options_;
  int gpu_id_;
  c10::Device device_;
  bool is_main_process_, is_announced_ = false, is_saved_ = false;
  bool continues_within_epochs_ = true;
  Snapshot snapshot_;
  int64_t step_ = 0;  // optimizer steps, summed over all runs
  int epoch_ = 0;
  int64_t batches_ = 0, at_batch_ = 0;  // of this epoch: in all, completed
  snapshot::PollSchedule stop_polls_;   // for stop requests
  int64_t first_batch_ = 0;             // of an epoch that was resumed in the middle
};

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& targets);
// Clips gradients, steps the optimizer and the scheduler, as the options demand.
void step_optimizer(torch::optim::Optimizer& optimizer, const TrainerOptions& options);

}  // namespace detail
}  // namespace cpprun

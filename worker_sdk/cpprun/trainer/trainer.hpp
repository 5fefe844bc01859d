/// @file
/// Trainer: the training loop of PyTorch's DDP tutorial, with its names. Subclasses override steps.
///
///     auto data = ToyData(2048).map(torch::data::transforms::Stack<>());
///     torch::optim::SGD optimizer(net->parameters(), 1e-3);
///     cpprun::Trainer trainer(net, data, optimizer, {.batch_size = 32, .save_every = 10});
///     trainer.train(50);
///     return trainer.exit_code();
///
/// Construct it on all ranks after init_process_group(), and destroy it before the group. It moves
/// the module to this rank's device, wraps it in DistributedDataParallel, distributes the samples
/// among the ranks, prints the tutorial's lines, sends a heartbeat to the agent for each batch, and
/// injects the faults of CPPRUN_FAULTS.
///
/// It saves snapshots of model, optimizer, scheduler, sampler, random number generators and
/// progress, and train() resumes from the newest: running the same command again continues the
/// training. When the agent requests a stop, it saves and returns. All ranks call its methods in
/// the same order, each from one thread. Python counterpart: the Trainer of the DDP tutorial
/// series.
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include <torch/data/dataloader.h>
#include <torch/optim/optimizer.h>

#include "cpprun/data/loader.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/trainer/trainer_core.hpp"
#include "cpprun/worker/main.hpp"

namespace cpprun {

/// The training loop of PyTorch's DDP tutorial, with snapshots. Subclasses override its steps.
///
/// `Module`: as for DistributedDataParallel; forward() takes one tensor. `Dataset`: stateless; its
/// batches have `data` and `target`, with the batch as first dimension (torch::data::Example<>
/// after Stack<>). `S`: any data::Sampler.
template <class Module, class Dataset, data::Sampler S = data::DistributedSampler>
class Trainer {
 public:
  /// `optimizer` and options.scheduler must outlive the Trainer; the data set is copied. Throws
  /// std::invalid_argument for invalid options.
  Trainer(std::shared_ptr<Module> model, Dataset train_data, torch::optim::Optimizer& optimizer,
          TrainerOptions options = {}) requires std::same_as<S, data::DistributedSampler>
      : Trainer(std::move(model), train_data,
                std::make_shared<S>(train_data.size().value(), options.sampler), optimizer,
                options) {}
  /// With the caller's sampler; options.sampler has no effect. If the sampler cannot continue
  /// within an epoch (data/sampler.hpp), the Trainer saves and stops between epochs only, and
  /// options.save_when is a std::invalid_argument.
  Trainer(std::shared_ptr<Module> model, Dataset train_data, std::shared_ptr<S> sampler,
          torch::optim::Optimizer& optimizer, TrainerOptions options = {})
      : options_(std::move(options)),
        core_(options_),
        model_(on_device(std::move(model), core_.device()), options_.ddp),
        sampler_(std::move(sampler)),
        train_data_(data::make_data_loader(
            std::move(train_data), sampler_,
            torch::data::DataLoaderOptions(options_.batch_size).workers(options_.workers))),
        optimizer_(optimizer) {
    data::DistributedSampler* known = nullptr;
    if constexpr (std::same_as<S, data::DistributedSampler>) known = sampler_.get();
    core_.snapshot().track(model_);  // with its buckets: they fix the order of sums
    core_.track(optimizer_, model_.module(), known, epochs_run_);
    if constexpr (detail::StatefulSampler<S>) core_.snapshot().track("sampler", *sampler_);
    core_.set_continues_within_epochs(continues_within_epochs());
  }
  virtual ~Trainer() = default;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains from epoch epochs_run(), which load_snapshot() may have set, up to `max_epochs`. If any
  /// rank was asked to stop, all ranks return early, after the same batch.
  void train(int max_epochs) {
    if (!std::exchange(has_loaded_, true)) load_snapshot();
    core_.announce();
    if (epochs_run_ >= max_epochs) return core_.print_done(max_epochs);
    bool is_saved = true;
    for (int epoch = epochs_run_; epoch < max_epochs && !is_stopped_; ++epoch) {
      run_epoch(epoch);
      if (is_stopped_) return on_stop(epoch, false);
      epochs_run_ = epoch + 1;
      if (options_.scheduler && !options_.schedules_batches) options_.scheduler->step();
      end_epoch(epoch);
      is_saved = options_.save_every > 0 && epoch % options_.save_every == 0;
      if (is_saved) save_snapshot(epoch);
      is_stopped_ = epochs_run_ < max_epochs && core_.is_stop_agreed();
      if (is_stopped_ && !is_saved) on_stop(epoch, true);
    }
    if (!is_saved && !is_stopped_ && options_.save_every > 0) save_snapshot(epochs_run_ - 1);
    core_.snapshot().wait();
  }

  /// The exit code of the program: 0; after a stop request, kStoppedResumable (75) if the state is
  /// saved, which shows the launcher that the job can be resumed, else 1.
  int exit_code() const {
    if (!is_stopped_) return 0;
    return core_.is_saved() ? kStoppedResumable : 1;
  }
  /// For tracking more objects, before train().
  Snapshot& snapshot() { return core_.snapshot(); }

  int gpu_id() const { return core_.gpu_id(); }    ///< LOCAL_RANK
  int epochs_run() const { return epochs_run_; }   ///< completed epochs
  bool is_stopped() const { return is_stopped_; }  ///< by a stop request, before max_epochs
  /// The wrapped model; model().module() is the caller's.
  nn::parallel::DistributedDataParallel<Module>& model() { return model_; }
  /// The caller's optimizer.
  torch::optim::Optimizer& optimizer() { return optimizer_; }
  S& sampler() { return *sampler_; }  ///< shared with the data loader
  /// The options of the constructor.
  const TrainerOptions& options() const { return options_; }
  /// The loss of this rank's last batch: a detached scalar; undefined before the first batch.
  const at::Tensor& last_loss() const { return last_loss_; }

 protected:
  /// Trains on one batch, which is on this rank's device: forward, loss, backward, optimizer step.
  /// Returns the loss.
  virtual at::Tensor run_batch(const at::Tensor& source, const at::Tensor& targets) {
    const detail::Window window = core_.window();
    if (window.is_first) model_.zero_grad();
    at::Tensor value;
    {
      const auto quiet = model_.no_sync_if(!window.is_last);
      value = loss(model_(source), targets);
      (window.batches == 1 ? value : value / window.batches).backward();
    }
    if (window.is_last) detail::step_optimizer(optimizer_, options_);
    return value.detach();
  }

  /// Trains one epoch, or the rest of it after a resume within the epoch.
  virtual void run_epoch(int epoch) {
    sampler_->set_epoch(epoch);
    core_.begin_epoch(epoch, sampler_->size(), remaining());
    model_.train();
    for (auto& batch : *train_data_) {
      core_.begin_batch();
      last_loss_ = run_batch(batch.data.to(core_.device()), batch.target.to(core_.device()));
      is_stopped_ = core_.end_batch();
      if (is_stopped_) return;
    }
  }

  /// The scalar loss of a batch. Default: cross entropy, as in the tutorial.
  virtual at::Tensor loss(const at::Tensor& output, const at::Tensor& targets) {
    return detail::cross_entropy(output, targets);
  }

  /// Called on all ranks after each completed epoch, for instance for validation.
  virtual void end_epoch(int) {}
  /// Called on all ranks after epochs 0, save_every, 2 * save_every ..., and after the last.
  virtual void save_snapshot(int epoch) { core_.save(epoch); }
  /// Called on all ranks before the first epoch; sets epochs_run_ if there is a snapshot.
  virtual void load_snapshot() { core_.resume(epochs_run_); }
  /// Called on all ranks when a stop request ends train(): within an epoch (false), if the sampler
  /// can continue there, or after an epoch that save_snapshot() did not save (true).
  virtual void on_stop(int epoch, bool) { save_snapshot(epoch); }

  /// Completed epochs, over all runs; train() and load_snapshot() set it.
  int epochs_run_ = 0;

 private:
  static std::shared_ptr<Module> on_device(std::shared_ptr<Module> model, c10::Device device) {
    model->to(device);
    return model;
  }
  // Whether the sampler's state shows which samples of an epoch were trained: it can be loaded, and
  // worker threads do not draw ahead of it.
  bool continues_within_epochs() const {
    if constexpr (std::same_as<S, data::DistributedSampler>) return true;
    const bool is_exact = data::MarksConsumed<S> || options_.workers == 0;
    return detail::StatefulSampler<S> && is_exact;
  }
  size_t remaining() const {
    if constexpr (requires(const S& s) { s.remaining(); }) {
      if (sampler_->remaining() > 0) return sampler_->remaining();
    }
    return sampler_->size();
  }
  using Loader =
      decltype(data::make_data_loader(std::declval<Dataset>(), std::declval<std::shared_ptr<S>>(),
                                      std::declval<torch::data::DataLoaderOptions>()));

  TrainerOptions options_;
  detail::TrainerCore core_;
  nn::parallel::DistributedDataParallel<Module> model_;
  std::shared_ptr<S> sampler_;
  Loader train_data_;
  torch::optim::Optimizer& optimizer_;
  at::Tensor last_loss_;
  bool has_loaded_ = false, is_stopped_ = false;
};

}  // namespace cpprun

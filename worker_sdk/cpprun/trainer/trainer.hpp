// Trainer: the training loop of the DDP tutorial, with its names; each step can be overridden.
//
//   auto data = ToyData(2048).map(torch::data::transforms::Stack<>());
//   torch::optim::SGD optimizer(net->parameters(), 1e-3);
//   cpprun::Trainer trainer(net, data, optimizer, {.batch_size = 32, .save_every = 10});
//   trainer.train(50);
//   return trainer.exit_code();
//
// Construct it on all ranks, inside an initialised process group; destroy it before the group. It
// moves the module to this rank's device, wraps it, deals the data, prints the tutorial's lines,
// tells the agent of each batch, and carries out CPPRUN_FAULTS. It saves snapshots (of model,
// optimizer, scheduler, sampler, random numbers and its place), and resumes from the newest: the
// same command typed again goes on. On a request to stop it saves and ends. One thread.
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

// `Module`: as for DistributedDataParallel, with a forward of one tensor. `Dataset`: stateless, its
// batches have `data` and `target` (torch::data::Example<> after Stack<>). `S`: any data::Sampler.
template <class Module, class Dataset, data::Sampler S = data::DistributedSampler>
class Trainer {
 public:
  // `optimizer` and options.scheduler must outlive the Trainer. The data set is copied.
  Trainer(std::shared_ptr<Module> model, Dataset train_data, torch::optim::Optimizer& optimizer,
          TrainerOptions options = {}) requires std::same_as<S, data::DistributedSampler>
      : Trainer(std::move(model), train_data,
                std::make_shared<S>(train_data.size().value(), options.sampler), optimizer,
                options) {}
  // With a sampler of one's own; options.sampler has no effect.
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
    core_.snapshot().track(model_);  // not its module: a resumed sum needs the buckets as well
    core_.track(optimizer_, model_.module(), known, epochs_run_);
  }
  virtual ~Trainer() = default;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Up to training epoch `max_epochs`, from epochs_run() on, which load_snapshot may have set.
  // Ends early, on all ranks at the same place, when one was asked to stop.
  void train(int max_epochs) {
    if (!std::exchange(has_loaded_, true)) load_snapshot();
    core_.announce();
    if (epochs_run_ >= max_epochs) return core_.say_done(max_epochs);
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

  // What the program returns: 0; after a request to stop kStoppedResumable (75) if everything is
  // saved, so that the launcher knows that this job goes on another time, else 1.
  int exit_code() const {
    if (!is_stopped_) return 0;
    return core_.is_saved() ? kStoppedResumable : 1;
  }
  // For track()ing more than the Trainer does, before train().
  Snapshot& snapshot() { return core_.snapshot(); }

  int gpu_id() const { return core_.gpu_id(); }    // LOCAL_RANK
  int epochs_run() const { return epochs_run_; }   // whole ones
  bool is_stopped() const { return is_stopped_; }  // by request, before max_epochs
  nn::parallel::DistributedDataParallel<Module>& model() { return model_; }
  torch::optim::Optimizer& optimizer() { return optimizer_; }
  S& sampler() { return *sampler_; }
  const TrainerOptions& options() const { return options_; }
  const at::Tensor& last_loss() const { return last_loss_; }  // of this rank's last batch, detached

 protected:
  // One batch, on this rank's device: forward, loss, backward, optimizer. Returns the loss.
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

  // One training epoch, or what a loaded sampler state has left of it.
  virtual void run_epoch(int epoch) {
    sampler_->set_epoch(epoch);
    core_.begin_epoch(epoch, sampler_->size(), remaining());
    mark_consumed(0);  // from here on its state counts what was trained on
    model_.train();
    for (auto& batch : *train_data_) {
      core_.begin_batch();
      last_loss_ = run_batch(batch.data.to(core_.device()), batch.target.to(core_.device()));
      mark_consumed(static_cast<size_t>(batch.data.size(0)));
      is_stopped_ = core_.end_batch();
      if (is_stopped_) return;
    }
  }

  // Default: cross entropy, as in the tutorial.
  virtual at::Tensor loss(const at::Tensor& output, const at::Tensor& targets) {
    return detail::cross_entropy(output, targets);
  }

  // After each training epoch, on all ranks: validation and the like.
  virtual void end_epoch(int) {}
  // All ranks, after each save_every-th training epoch, the first included, and after the last.
  virtual void save_snapshot(int epoch) { core_.save(epoch); }
  // All ranks, before the first training epoch; sets epochs_run_ if there is a snapshot.
  virtual void load_snapshot() { core_.resume(epochs_run_); }
  // All ranks, when train() ends by request: within a training epoch, or after one that was not
  // saved.
  virtual void on_stop(int epoch, bool) { save_snapshot(epoch); }

  int epochs_run_ = 0;

 private:
  static std::shared_ptr<Module> on_device(std::shared_ptr<Module> model, c10::Device device) {
    model->to(device);
    return model;
  }
  // Where the sampler tells what was trained on from what was dealt.
  void mark_consumed(size_t samples_of_this_rank) {
    if constexpr (requires(S & s) { s.mark_consumed(size_t{}); }) {
      sampler_->mark_consumed(samples_of_this_rank);
    }
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

template <class Module, class Dataset>
Trainer(std::shared_ptr<Module>, Dataset, torch::optim::Optimizer&, TrainerOptions)
    -> Trainer<Module, Dataset, data::DistributedSampler>;
template <class Module, class Dataset>
Trainer(std::shared_ptr<Module>, Dataset, torch::optim::Optimizer&)
    -> Trainer<Module, Dataset, data::DistributedSampler>;

}  // namespace cpprun

/// @file
/// ElasticDataParallel: a DistributedDataParallel of the current round, whose gradients are summed
/// in the order of the round before. Python counterpart: elastic.data_parallel() and
/// round.data_parallel() of cpprun_worker.
///
/// ElasticRound::data_parallel() makes one for the call of a training function,
/// ElasticSteps::data_parallel() one that stays: in each round it makes its DistributedDataParallel
/// anew. One thread. Destroy it before the ElasticSteps, or within the training function.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cpprun/elastic/elastic_model.hpp"
#include "cpprun/nn/parallel/comm_hooks.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"

namespace cpprun {

class ElasticRound;
class ElasticSteps;

/// A DistributedDataParallel of the current round. `Module` is that of DistributedDataParallel. One
/// thread.
template <class Module>
class ElasticDataParallel final : private detail::ElasticModel {
 public:
  /// @{
  /// As DistributedDataParallel::forward(). Throws std::logic_error outside of a round.
  template <class... Args>
  auto forward(Args&&... args) {
    return current().forward(std::forward<Args>(args)...);
  }
  template <class... Args>
  auto operator()(Args&&... args) {
    return current().forward(std::forward<Args>(args)...);
  }
  /// @}

  /// The DistributedDataParallel of this round, for its other members: it ends with the round.
  /// Throws std::logic_error outside of a round.
  nn::parallel::DistributedDataParallel<Module>& current() {
    if (made_) return *made_;
    throw std::logic_error("ElasticDataParallel: there is no round: use it in the training loop");
  }
  /// The wrapped module.
  Module& module() { return *module_; }
  /// The wrapped module, shared.
  const std::shared_ptr<Module>& ptr() const { return module_; }
  /// As DistributedDataParallel::no_sync().
  [[nodiscard]] nn::parallel::NoSyncGuard no_sync() { return current().no_sync(); }
  /// As DistributedDataParallel::register_comm_hook(), in this round and in all that follow. A
  /// hook's own state, such as PowerSGD's, stays too, with what an interrupted step has added.
  void register_comm_hook(nn::parallel::CommHook hook) {
    if (hook_) throw std::invalid_argument("register_comm_hook: there can be one hook");
    if (made_) made_->register_comm_hook(hook);
    hook_ = std::move(hook);
  }

 private:
  friend class ElasticRound;
  friend class ElasticSteps;
  enum class Begin { Now, WithTheLoop };
  ElasticDataParallel(detail::ElasticRunner& runner, std::shared_ptr<Module> module,
                      nn::parallel::DdpOptions options, Begin begin)
      : ElasticModel(runner), module_(std::move(module)), options_(std::move(options)) {
    if (!module_) throw std::invalid_argument("data_parallel: the module is empty");
    if (begin == Begin::Now) bind_in_order();
  }

  void bind() override {
    made_.emplace(module_, options_);
    if (hook_) made_->register_comm_hook(*hook_);
  }
  void unbind() override { made_.reset(); }
  std::string buckets() override { return current().core().buckets(); }
  void set_buckets(const std::string& order) override { current().core().set_buckets(order); }

  const std::shared_ptr<Module> module_;
  const nn::parallel::DdpOptions options_;
  std::optional<nn::parallel::CommHook> hook_;
  std::optional<nn::parallel::DistributedDataParallel<Module>> made_;
};

}  // namespace cpprun

/// @file
/// ZeroRedundancyOptimizer: an optimizer of which each rank keeps the state of a part of the
/// parameters only (ZeRO stage 1). Python counterpart: torch.distributed.optim, same name.
///
///     using AdamW = optim::ZeroRedundancyOptimizer<torch::optim::AdamW>;
///     AdamW optimizer(ddp.parameters(), torch::optim::AdamWOptions(1e-3));
///
/// step() steps this rank's part and broadcasts it, so that all ranks have all new parameters, with
/// the bits of the plain optimizer. Gradients must be equal on all ranks, as after a backward of
/// DistributedDataParallel. step() is a collective. It is an `Optimizer` with all parameters in its
/// groups, so schedulers, GradScaler and clip_grad_norm_ take it as it is.
///
/// Any optimizer that updates each parameter by itself; not LBFGS. A Snapshot keeps the whole
/// state, in the format of the plain optimizer, which may resume from it, as may another number of
/// ranks. While a save copies the state, each rank holds all of it. One thread. The group must
/// outlive it.
#pragma once

#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::optim {

/// Options of ZeroRedundancyOptimizer.
struct ZeroRedundancyOptions {
  dist::ProcessGroup process_group = {};  ///< empty: the default group
};

/// The part of ZeroRedundancyOptimizer that does not depend on the kind of optimizer.
class ShardedOptimizer {
 public:
  virtual ~ShardedOptimizer() = default;
  /// The group that shares the state; empty: the default group.
  const dist::ProcessGroup& process_group() const { return options_.process_group; }
  /// The rank in the group that keeps the parameter's state. Throws std::invalid_argument for a
  /// tensor that is none of the optimizer's parameters.
  int owner_of(const at::Tensor& parameter);
  bool is_own(const at::Tensor& parameter);  ///< whether this rank is the owner

 protected:
  /// The parameter groups of a torch optimizer.
  using Groups = std::vector<torch::optim::OptimizerParamGroup>;
  /// A function that computes the loss, as torch's optimizers take it.
  using LossClosure = torch::optim::Optimizer::LossClosure;
  /// For ZeroRedundancyOptimizer: `optimizer` is the same object.
  ShardedOptimizer(torch::optim::Optimizer& optimizer, ZeroRedundancyOptions options)
      : optimizer_(optimizer), options_(std::move(options)) {}
  ShardedOptimizer(const ShardedOptimizer&) = delete;
  ShardedOptimizer& operator=(const ShardedOptimizer&) = delete;

  /// Deletes the state of parameters that other ranks keep.
  void drop_states_of_others();
  /// Calls `closure`, then `step` while the groups have this rank's parameters only, and broadcasts
  /// the parameters. Returns the loss; undefined without a closure.
  at::Tensor step_own_part(const LossClosure& closure, const std::function<void()>& step);

 private:
  void assign_owners();
  void broadcast_parameters();

  torch::optim::Optimizer& optimizer_;
  ZeroRedundancyOptions options_;
  std::unordered_map<const void*, int> owners_;  // by TensorImpl
};

/// An optimizer of which each rank keeps the state of a part of the parameters only. `Optimizer`: a
/// class of torch::optim or FusedSGD, FusedAdam, FusedAdamW. Python counterpart:
/// torch.distributed.optim.ZeroRedundancyOptimizer.
template <class Optimizer>
class ZeroRedundancyOptimizer : public Optimizer, public ShardedOptimizer {
  static_assert(!std::is_base_of_v<torch::optim::LBFGS, Optimizer>,
                "LBFGS updates all parameters together");

 public:
  /// A function that computes the loss, as torch's optimizers take it.
  using LossClosure = torch::optim::Optimizer::LossClosure;

  /// @{
  /// `params`, `groups` and `defaults` as for `Optimizer`, the same on all ranks. Communicates
  /// nothing.
  template <class Defaults>
  ZeroRedundancyOptimizer(std::vector<at::Tensor> params, Defaults defaults,
                          ZeroRedundancyOptions options = {})
      : Optimizer(std::move(params), std::move(defaults)),
        ShardedOptimizer(static_cast<torch::optim::Optimizer&>(*this), std::move(options)) {
    drop_states_of_others();
  }
  template <class Defaults>
  ZeroRedundancyOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                          Defaults defaults, ZeroRedundancyOptions options = {})
      : Optimizer(groups, std::move(defaults)),
        ShardedOptimizer(static_cast<torch::optim::Optimizer&>(*this), std::move(options)) {
    drop_states_of_others();
  }
  /// @}

  /// Steps this rank's part and broadcasts it; a collective. `closure`, if given, is called first;
  /// the result is its loss, else undefined.
  at::Tensor step(LossClosure closure = nullptr) override {
    return step_own_part(closure, [this] { Optimizer::step(); });
  }
};

}  // namespace cpprun::optim

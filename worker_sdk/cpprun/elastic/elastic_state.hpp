/// @file
/// ElasticState: what a training step changes and a new worker needs. Python counterpart: the
/// objects that round.share_state() and elastic.steps() of cpprun_worker take.
///
///     cpprun::ElasticState state;
///     state.track(net).track(optimizer).track(sampler).track("loss_scale", loss_scale);
///
/// All ranks track the same objects under the same names. It holds references: tracked objects must
/// outlive it. One thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/snapshot/snapshot.hpp"

namespace cpprun {

/// What a training step changes and a new worker needs. All ranks make the same calls in the same
/// order, from one thread. The text of this file has an example.
class ElasticState {
 public:
  ElasticState();
  ElasticState(const ElasticState&) = delete;
  ElasticState& operator=(const ElasticState&) = delete;
  ~ElasticState();

  /// A module by its parameters and buffers.
  ///
  /// Track each object once, under a name of its own; std::invalid_argument if the name or the
  /// object is tracked already.
  ElasticState& track(const std::string& name, torch::nn::Module& model);
  /// An optimizer. Throws std::invalid_argument for LBFGS, and for a ZeroRedundancyOptimizer, of
  /// whose state each rank has a part only: use a Snapshot.
  ElasticState& track(const std::string& name, torch::optim::Optimizer& optimizer);
  /// A scheduler, with the rates of its optimizer.
  ElasticState& track(const std::string& name, optim::LRScheduler& scheduler);
  /// A sampler, by its position. In each round it takes the samples of the round's rank, whatever
  /// num_replicas and rank it was made with.
  ElasticState& track(const std::string& name, data::DistributedSampler& sampler);
  /// A GradScaler.
  ElasticState& track(const std::string& name, optim::GradScaler& scaler);
  /// @{
  /// A value of the program.
  ElasticState& track(const std::string& name, bool& value);
  ElasticState& track(const std::string& name, int& value);
  ElasticState& track(const std::string& name, int64_t& value);
  ElasticState& track(const std::string& name, double& value);
  ElasticState& track(const std::string& name, std::string& value);
  ElasticState& track(const std::string& name, at::Tensor& value);
  /// @}
  /// Any class with state_dict() and load_state_dict(), as Snapshot::track() takes it.
  template <detail::Stateful Object>
  ElasticState& track(const std::string& name, Object& object) {
    using State = std::remove_cvref_t<decltype(object.state_dict())>;
    return track_stateful(
        name, &object,
        [&object] { return detail::to_state_dict<State>(std::as_const(object).state_dict()); },
        [&object](const StateDict& saved) {
          object.load_state_dict(detail::from_state_dict<State>(saved));
        });
  }
  /// A sampler of your own: a data::Sampler with load_state(), which takes what state() returns.
  template <detail::StatefulSampler Sampler>
  ElasticState& track(const std::string& name, Sampler& sampler) {
    using State = std::remove_cvref_t<decltype(std::as_const(sampler).state())>;
    return track_stateful(
        name, &sampler,
        [&sampler] { return detail::to_state_dict<State>(std::as_const(sampler).state()); },
        [&sampler](const StateDict& saved) {
          sampler.load_state(detail::from_state_dict<State>(saved));
        });
  }
  /// A model inside std::shared_ptr or a TORCH_MODULE holder.
  template <class Model>
  requires detail::HoldsModule<std::remove_cvref_t<Model>> ElasticState& track(
      const std::string& name, Model&& model) {
    return track(name, detail::module_of(model));
  }
  /// Take the module itself: a DistributedDataParallel belongs to a round, and its constructor
  /// gives all ranks the parameters of rank 0, which may be new.
  template <class Model>
  requires detail::WrapsModule<std::remove_cvref_t<Model>> ElasticState& track(
      const std::string& name, Model&& model) = delete;
  /// track() under the default name of the object's kind: "model", "optimizer", "scheduler",
  /// "sampler" or "scaler".
  template <class Object>
  requires(!std::convertible_to<Object, std::string>) ElasticState& track(Object&& object) {
    return track(default_name(object), object);
  }

  /// For the SDK: the objects in the order of track().
  const std::vector<snapshot::Tracked>& objects() const;
  /// For the SDK: binds the samplers to a rank of a round.
  void bind_samplers(int world_size, int rank);

 private:
  ElasticState& add(const std::string& name, snapshot::Tracked tracked);
  ElasticState& track_stateful(const std::string& name, const void* object,
                               std::function<StateDict()> save,
                               std::function<void(const StateDict&)> load);
  static std::string default_name(const torch::nn::Module&) { return "model"; }
  static std::string default_name(const torch::optim::Optimizer&) { return "optimizer"; }
  static std::string default_name(const optim::LRScheduler&) { return "scheduler"; }
  static std::string default_name(const data::DistributedSampler&) { return "sampler"; }
  static std::string default_name(const optim::GradScaler&) { return "scaler"; }
  template <detail::StatefulSampler Sampler>
  static std::string default_name(const Sampler&) {
    return "sampler";
  }
  template <detail::HoldsModule Model>
  static std::string default_name(const Model&) {
    return "model";
  }

  struct Impl;  // its members have types that are private to snapshot
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun

#include "cpprun/elastic/elastic_state.hpp"

#include <torch/optim/lbfgs.h>

#include <stdexcept>
#include <utility>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/optim/grad_scaler.hpp"
#include "cpprun/optim/lr_scheduler.hpp"
#include "cpprun/optim/zero_redundancy_optimizer.hpp"
#include "cpprun/snapshot/state/tracked.hpp"

namespace cpprun {

using snapshot::Tracked;

namespace {

constexpr const char* kValue = "value";

// Python has one integer type, and so have the pickles.
template <class T>
Tracked share_value(T& value) {
  using Kept = std::conditional_t<std::is_same_v<T, bool> || std::is_same_v<T, int>, int64_t, T>;
  return snapshot::track_state_dict(
      snapshot::Kind::Value, &value,
      [&value] {
        return StateDict{{kValue, StateValue(static_cast<Kept>(value))}};
      },
      [&value](const StateDict& saved) {
        value = static_cast<T>(std::get<Kept>(saved.at(kValue)));
      });
}

}  // namespace

struct ElasticState::Impl {
  std::vector<Tracked> objects;
  std::vector<data::DistributedSampler> samplers;  // copies share the state of the given ones
};

ElasticState::ElasticState() : impl_(std::make_unique<Impl>()) {}
ElasticState::~ElasticState() = default;

const std::vector<Tracked>& ElasticState::objects() const { return impl_->objects; }

void ElasticState::bind_samplers(int world_size, int rank) {
  for (data::DistributedSampler& each : impl_->samplers) each.bind(world_size, rank);
}

ElasticState& ElasticState::add(const std::string& name, Tracked tracked) {
  for (const Tracked& each : impl_->objects) {
    const bool is_same = each.object == tracked.object;
    if (each.name != name && !is_same) continue;
    throw std::invalid_argument("an ElasticState tracks '" + name + "'" +
                                (is_same ? " already, as '" + each.name + "'" : " twice") +
                                ": each object is tracked once, under a name of its own");
  }
  tracked.name = name;
  impl_->objects.push_back(std::move(tracked));
  return *this;
}

ElasticState& ElasticState::track(const std::string& name, torch::nn::Module& model) {
  return add(name, snapshot::track_module(model, /*is_strict=*/true));
}

ElasticState& ElasticState::track(const std::string& name, torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<optim::ShardedOptimizer*>(&optimizer) != nullptr) {
    throw std::invalid_argument(
        "an ElasticState can't track a ZeroRedundancyOptimizer, of whose state each rank has a "
        "part only: let all ranks resume from a Snapshot");
  }
  if (dynamic_cast<torch::optim::LBFGS*>(&optimizer) != nullptr) {
    throw std::invalid_argument(
        "an ElasticState can't track LBFGS, which calls the loss several times in a step: let all "
        "ranks resume from a Snapshot");
  }
  // Without names: all ranks have the same groups.
  return add(name, snapshot::track_optimizer(optimizer, {}));
}

ElasticState& ElasticState::track(const std::string& name, optim::LRScheduler& scheduler) {
  return add(name, snapshot::track_scheduler(scheduler));
}

ElasticState& ElasticState::track(const std::string& name, data::DistributedSampler& sampler) {
  add(name, snapshot::track_sampler(sampler));
  impl_->samplers.push_back(sampler);
  return *this;
}

ElasticState& ElasticState::track(const std::string& name, optim::GradScaler& scaler) {
  return track_stateful(
      name, &scaler, [&scaler] { return detail::whole_numbers(scaler.state_dict()); },
      [&scaler](const StateDict& saved) { scaler.load_state_dict(detail::real_numbers(saved)); });
}

ElasticState& ElasticState::track(const std::string& name, bool& value) {
  return add(name, share_value(value));
}

ElasticState& ElasticState::track(const std::string& name, int& value) {
  return add(name, share_value(value));
}

ElasticState& ElasticState::track(const std::string& name, int64_t& value) {
  return add(name, share_value(value));
}

ElasticState& ElasticState::track(const std::string& name, double& value) {
  return add(name, share_value(value));
}

ElasticState& ElasticState::track(const std::string& name, std::string& value) {
  return add(name, share_value(value));
}

ElasticState& ElasticState::track(const std::string& name, at::Tensor& value) {
  return add(name, {.object = &value,
                    .save = [&value](snapshot::Capture& capture) { return capture.add(value); },
                    .load =
                        [&value](const pickle::Value& held, const snapshot::Storages& storages) {
                          const auto& ref = snapshot::as<pickle::TensorRef>(held, "a tensor");
                          snapshot::assign(value, ref, storages);
                        }});
}

ElasticState& ElasticState::track_stateful(const std::string& name, const void* object,
                                           std::function<StateDict()> save,
                                           std::function<void(const StateDict&)> load) {
  return add(name, snapshot::track_state_dict(snapshot::Kind::Value, object, std::move(save),
                                              std::move(load)));
}

}  // namespace cpprun

// The state of an optimizer whose ranks keep a part of it each (ZeroRedundancyOptimizer). Slow to
// compile; private to optimizer_state.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/objects.hpp"
#include "cpprun/optim/zero_redundancy_optimizer.hpp"
#include "cpprun/snapshot/state/optimizer_kinds.hpp"

namespace cpprun::snapshot {

// Null: the optimizer has no state of this parameter.
template <class Kind>
typename Kind::ParamState* state_of(torch::optim::Optimizer& optimizer,
                                    const at::Tensor& parameter) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  if (found == optimizer.state().end()) return nullptr;
  return static_cast<typename Kind::ParamState*>(found->second.get());
}

// What the ranks send to each other about a state before its tensors: counts, and for each tensor
// whether it is there (1 or 0), in the order of the fields.
struct StateOutline {
  std::vector<int64_t> numbers;
  void operator()(const char*, int64_t& steps) { numbers.push_back(steps); }
  void operator()(const char*, at::Tensor& tensor) { numbers.push_back(tensor.defined() ? 1 : 0); }
};

// Broadcasts the tensors of a state. On ranks that receive, makes them, as large as the parameter.
struct StateBroadcast {
  const std::vector<int64_t>& outline;
  const at::Tensor& parameter;
  const dist::ProcessGroup& group;
  int source;  // global rank
  size_t next = 0;
  void operator()(const char*, int64_t& steps) { steps = outline.at(next++); }
  void operator()(const char*, at::Tensor& tensor) {
    if (outline.at(next++) == 0) return;
    if (!tensor.defined()) tensor = at::empty_like(parameter.detach());
    dist::broadcast(tensor, source, {.group = group});
  }
};

// Collective, if the optimizer is sharded. The states that other ranks keep, by TensorImpl; empty
// for other optimizers. Saves put them into the file as if this rank kept them.
template <class Kind>
requires(!JointState<typename Kind::ParamState>)
    std::map<const void*, std::unique_ptr<typename Kind::ParamState>> states_of_other_ranks(
        torch::optim::Optimizer& optimizer, Kind) {
  std::map<const void*, std::unique_ptr<typename Kind::ParamState>> others;
  auto* const sharded = dynamic_cast<optim::ShardedOptimizer*>(&optimizer);
  if (sharded == nullptr || dist::get_world_size(sharded->process_group()) == 1) return others;
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  std::map<int64_t, std::vector<int64_t>> own;  // by the parameter's number
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto* const state = state_of<Kind>(optimizer, parameters[i]);
    if (state == nullptr || !sharded->is_own(parameters[i])) continue;
    StateOutline outline;
    fields(*state, outline);
    own[static_cast<int64_t>(i)] = std::move(outline.numbers);
  }
  const auto all = dist::all_gather_object(own, sharded->process_group());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int owner = sharded->owner_of(parameters[i]);
    const auto& outlines = all.at(static_cast<size_t>(owner));
    const auto outline = outlines.find(static_cast<int64_t>(i));
    if (outline == outlines.end()) continue;
    auto* state = state_of<Kind>(optimizer, parameters[i]);
    if (!sharded->is_own(parameters[i])) {
      auto& other = others[parameters[i].unsafeGetTensorImpl()];
      other = std::make_unique<typename Kind::ParamState>();
      state = other.get();
    }
    const int source = dist::get_global_rank(sharded->process_group(), owner);
    fields(*state,
           StateBroadcast{outline->second, parameters[i], sharded->process_group(), source});
  }
  return others;
}
// A joint state is never sharded.
template <class Kind>
requires JointState<typename Kind::ParamState>
    std::map<const void*, std::unique_ptr<typename Kind::ParamState>> states_of_other_ranks(
        torch::optim::Optimizer&, Kind) {
  return {};
}

}  // namespace cpprun::snapshot

#include "cpprun/elastic/update_watch.hpp"

#include <ATen/ATen.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>

namespace cpprun::detail {
namespace {

using torch::optim::Optimizer;

template <class F>
void for_each_parameter(const Optimizer& optimizer, F&& f) {
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& each : group.params()) f(each);
  }
}

// So that NaN equals itself.
at::Tensor bits_of(const at::Tensor& parameter) {
  return parameter.detach().flatten().view(at::kByte);
}

template <class State>
std::vector<int64_t> counts(const Optimizer& optimizer) {
  std::vector<int64_t> all;
  for_each_parameter(optimizer, [&](const at::Tensor& parameter) {
    const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
    const bool has_state = found != optimizer.state().end() && found->second;
    all.push_back(has_state ? static_cast<const State&>(*found->second).step() : -1);
  });
  return all;
}

// Nothing: the optimizer does not count.
std::optional<std::vector<int64_t>> counted_steps(const Optimizer& optimizer) {
  using namespace torch::optim;
  if (dynamic_cast<const Adam*>(&optimizer) != nullptr) return counts<AdamParamState>(optimizer);
  if (dynamic_cast<const AdamW*>(&optimizer) != nullptr) return counts<AdamWParamState>(optimizer);
  if (dynamic_cast<const Adagrad*>(&optimizer) != nullptr) {
    return counts<AdagradParamState>(optimizer);
  }
  if (dynamic_cast<const RMSprop*>(&optimizer) != nullptr) {
    return counts<RMSpropParamState>(optimizer);
  }
  return std::nullopt;
}

}  // namespace

UpdateWatch::UpdateWatch(const Optimizer& optimizer)
    : optimizer_(optimizer), counts_(counted_steps(optimizer)) {
  if (counts_) return;
  for_each_parameter(optimizer, [this](const at::Tensor& parameter) {
    copies_.push_back(parameter.detach().clone());
  });
}

bool UpdateWatch::has_begun() const {
  if (counts_) return counted_steps(optimizer_) != counts_;
  bool has_changed = false;
  size_t next = 0;
  for_each_parameter(optimizer_, [&](const at::Tensor& parameter) {
    has_changed = has_changed || next >= copies_.size() ||
                  !at::equal(bits_of(parameter), bits_of(copies_[next]));
    ++next;
  });
  return has_changed;
}

}  // namespace cpprun::detail

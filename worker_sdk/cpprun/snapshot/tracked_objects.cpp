#include "cpprun/snapshot/tracked_objects.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cpprun/snapshot/state/state_layout.hpp"

namespace cpprun::snapshot {
namespace {

// Integers are; tensors that a snapshot refuses count as finite.
bool is_finite(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  if (!at::isFloatingType(type) && !at::isComplexType(type)) return true;
  if (tensor.layout() != at::kStrided) return true;
  // LibTorch has no isfinite() of some types of one byte.
  const at::Tensor values = tensor.itemsize() == 1 ? tensor.to(at::kFloat) : tensor;
  return at::isfinite(values).all().item<bool>();
}

}  // namespace

void TrackedObjects::add(const std::string& name, Tracked added) {
  for (const Tracked& each : all_) {
    const bool is_same = added.object != nullptr && each.object == added.object;
    if (each.name == name || is_same) {
      throw std::invalid_argument("a Snapshot tracks '" + name + "'" +
                                  (is_same ? " already, as '" + each.name + "'" : " twice") +
                                  ": each thing is tracked once");
    }
  }
  added.name = name;
  const std::string key = single_key(added);
  const bool is_taken = std::ranges::count(all_, key, single_key) > 0;
  if (name.empty() || is_taken || key == kRanksKey || key == kStepKey || key == kFormatKey ||
      key == kSecondsKey) {
    throw std::invalid_argument("a Snapshot can't track anything as '" + name +
                                "': the name is taken" +
                                (key == kStepKey ? " (resume() returns the step)" : ""));
  }
  all_.push_back(std::move(added));
}

// With several tracked modules, names are prefixed with the name of their module.
std::vector<NamedParameter> TrackedObjects::parameters() const {
  std::vector<NamedParameter> all;
  for (const Tracked& each : all_) {
    if (each.kind != Kind::Module) continue;
    const auto* module = static_cast<const torch::nn::Module*>(each.object);
    for (auto& own : named_parameters(*module)) {
      if (modules().size() > 1) own.name.insert(0, each.name + ".");
      all.push_back(std::move(own));
    }
  }
  return all;
}

std::vector<const torch::nn::Module*> TrackedObjects::modules() const {
  std::vector<const torch::nn::Module*> modules;
  for (const Tracked& each : all_) {
    if (each.kind == Kind::Module) {
      modules.push_back(static_cast<const torch::nn::Module*>(each.object));
    }
  }
  return modules;
}

std::string TrackedObjects::first_not_finite() const {
  for (const Tracked& each : all_) {
    for (const Named& tensor : each.trained ? each.trained() : std::vector<Named>()) {
      if (!is_finite(tensor.tensor.detach())) return each.name + "." + tensor.name;
    }
  }
  return "";
}

}  // namespace cpprun::snapshot

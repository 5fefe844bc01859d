// Tracked: one thing that a snapshot keeps, whatever its type. Private to snapshot.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/snapshot/state/tensors.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}
namespace cpprun::data {
class DistributedSampler;
}
namespace cpprun::optim {
class LRScheduler;
}

namespace cpprun::snapshot {

enum class Kind { Module, Optimizer, Scheduler, Sampler, Random, Value };

struct Tracked {
  std::string name = {};
  Kind kind = Kind::Value;
  bool is_per_rank = false;  // else the same on all ranks
  bool is_optional = false;  // nothing is said when a snapshot has none
  const void* object = nullptr;
  std::function<pickle::Value(Capture&)> save = {};
  // Throws std::runtime_error, which names what does not fit.
  std::function<void(const pickle::Value&, const Storages&)> load = {};
  // For a rank that the snapshot has nothing of: something of its own, the same each time. May be
  // empty.
  std::function<void(uint64_t step, int rank)> derive = {};
};

// A parameter as optimizers know it, by its name.
struct NamedParameter {
  std::string name;
  at::Tensor tensor;
};
std::vector<NamedParameter> named_parameters(const torch::nn::Module& module);

// Makers; what they are given must outlive what they return. Python's layouts.
Tracked track_module(torch::nn::Module& module, bool is_strict);
Tracked track_optimizer(torch::optim::Optimizer& optimizer, std::vector<NamedParameter> names);
Tracked track_scheduler(optim::LRScheduler& scheduler);
Tracked track_sampler(data::DistributedSampler& sampler);
// The CPU's generator, and that of `cuda_device`, if not negative.
Tracked track_generators(int cuda_device);

// Number in a file, which may be an int, a float, a bool or a tensor of one element.
double number_of(const pickle::Value& value, const Storages& storages);

// What the process has that a snapshot should keep (hints.cpp).
bool draws_random_numbers(const torch::nn::Module& module);
bool is_trained(const torch::nn::Module& module);  // a parameter wants gradients

}  // namespace cpprun::snapshot

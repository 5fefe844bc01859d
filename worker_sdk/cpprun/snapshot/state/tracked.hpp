// Tracked: one object that a snapshot saves, independent of its type. Private to snapshot, elastic.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpprun/snapshot/snapshot.hpp"  // declares the types of the objects
#include "cpprun/snapshot/state/module_tensors.hpp"
#include "cpprun/snapshot/state/tensors.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::snapshot {

enum class Kind { Module, Optimizer, Scheduler, Sampler, Scaler, CommHook, Random, Value };

struct Tracked {
  std::string name = {};
  Kind kind = Kind::Value;
  bool is_per_rank = false;  // else the same on all ranks
  bool is_optional = false;  // no warning if a snapshot lacks it
  bool is_strict = false;    // an error if a snapshot lacks it
  const void* object = nullptr;
  std::function<pickle::Value(Capture&)> save = {};
  // Throws std::runtime_error that names what does not match.
  std::function<void(const pickle::Value&, const Storages&)> load = {};
  // Sets a deterministic state for a rank of which the snapshot has none. May be empty.
  std::function<void(uint64_t step, int rank)> derive = {};
  // The tensors that training computes, of which none should have a NaN: of modules, and of
  // optimizers as far as this rank keeps them. May be empty.
  std::function<std::vector<Named>()> trained = {};
};

struct NamedParameter {
  std::string name;
  at::Tensor tensor;
};
std::vector<NamedParameter> named_parameters(const torch::nn::Module& module);

// Saved as Python's state_dict of the object. The object must outlive the Tracked.
Tracked track_module(torch::nn::Module& module, bool is_strict);
Tracked track_optimizer(torch::optim::Optimizer& optimizer, std::vector<NamedParameter> names);
Tracked track_scheduler(optim::LRScheduler& scheduler);
Tracked track_sampler(data::DistributedSampler& sampler);
// Any object by its StateDict, a dict in the file.
Tracked track_state_dict(Kind kind, const void* object, std::function<StateDict()> save,
                         std::function<void(const StateDict&)> load);
// The CPU's random number generator, and that of `cuda_device` if not negative.
Tracked track_generators(int cuda_device);

// A value of a file. Throws: "the file has a list where <what> belongs".
template <class T>
const T& as(const pickle::Value& value, const std::string& what) {
  if (const T* held = value.get_if<T>()) return *held;
  throw std::runtime_error(std::string("the file has a ") + kind_name(value) + " where " + what +
                           " belongs");
}

// A number of a file: an int, a float, a bool or a tensor of one element.
double number_of(const pickle::Value& value, const Storages& storages);

// For the warnings of hints.cpp.
bool draws_random_numbers(const torch::nn::Module& module);
bool is_trained(const torch::nn::Module& module);  // some parameter requires gradients

}  // namespace cpprun::snapshot

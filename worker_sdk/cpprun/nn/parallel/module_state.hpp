// Collects a module's parameters and buffers in Python's order, and checks that the options fit
// them. Private to nn.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "cpprun/nn/parallel/ddp_options.hpp"

namespace cpprun::nn::parallel {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct ModuleState {
  // What the Reducer averages: requires a gradient, is not ignored, each tensor once.
  std::vector<std::string> names;
  std::vector<at::Tensor> reduced;
  std::vector<bool> is_sparse;
  // What rank 0 broadcasts at the start: all parameters and buffers except ignored ones.
  NamedTensors parameters;
  NamedTensors buffers;
  std::vector<at::Tensor> buffer_list;     // the tensors of `buffers`
  std::vector<at::Tensor> all_parameters;  // with ignored ones, each once
  std::string type;
  bool has_sync_batch_norm = false;
  std::string plain_batch_norm;  // path of the first BatchNorm; empty: none
};

// Throws std::invalid_argument if no parameter requires a gradient.
ModuleState collect_state(torch::nn::Module& module, const DdpOptions& options);
// Throws std::invalid_argument, as Python does, if the parameters are on several kinds of devices
// or if device_ids does not name the module's device.
void check_devices(const ModuleState& state, const DdpOptions& options);

}  // namespace cpprun::nn::parallel

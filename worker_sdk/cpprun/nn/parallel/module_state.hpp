// What DistributedDataParallel takes from a module: parameters and buffers in Python's order, and
// whether its options fit them. Private to nn.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "cpprun/nn/parallel/ddp_options.hpp"

namespace cpprun::nn::parallel {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct ModuleState {
  // What the Reducer averages: requires a gradient, not ignored, each tensor once.
  std::vector<std::string> names;
  std::vector<at::Tensor> reduced;
  std::vector<bool> is_sparse;
  // What is made equal at the start: all parameters and buffers but the ignored ones.
  NamedTensors parameters;
  NamedTensors buffers;
  std::vector<at::Tensor> buffer_list;     // the tensors of `buffers`
  std::vector<at::Tensor> all_parameters;  // ignored ones too, each once
  std::string type;
  bool has_sync_batch_norm = false;
  std::string plain_batch_norm;  // path of the first unsynchronised one; empty: none
};

// Throws std::invalid_argument if there is nothing to average.
ModuleState collect_state(torch::nn::Module& module, const DdpOptions& options);
// Throws std::invalid_argument as Python does: several kinds of devices, device_ids for a module
// that is not there, both named.
void check_devices(const ModuleState& state, const DdpOptions& options);

}  // namespace cpprun::nn::parallel

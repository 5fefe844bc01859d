// The options of DistributedDataParallel, with Python's names and defaults.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn::parallel {

struct DdpOptions {
  // Empty, or one device that holds the whole module; must be empty for CPU modules and modules on
  // several devices.
  std::vector<int> device_ids;
  std::optional<int> output_device;
  int dim = 0;
  bool broadcast_buffers = true;  // rank 0's, before each forward that is synchronised
  bool init_sync = true;          // rank 0's parameters and buffers at construction
  dist::ProcessGroup process_group;
  std::optional<double> bucket_cap_mb;  // 25, the first bucket 1
  bool find_unused_parameters = false;
  bool check_reduction = false;  // without effect, as in Python
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  bool skip_all_reduce_unused_params = false;
  std::set<std::string> ignored_parameters;  // Python: _set_params_and_buffers_to_ignore_for_model
};

struct JoinOptions {
  bool divide_by_initial_world_size = true;
  bool enable = true;
  bool throw_on_early_termination = false;
};

}  // namespace cpprun::nn::parallel

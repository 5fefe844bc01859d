// The options of DistributedDataParallel, with Python's names and defaults, and its own errors.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn::parallel {

struct DdpOptions {
  // Empty, or one CUDA device that holds the whole module: inputs are moved there. Must be empty
  // for CPU modules and modules on several devices.
  std::vector<int> device_ids = {};
  std::optional<int> output_device = {};  // default: device_ids[0]; only reported
  int dim = 0;                            // without effect: inputs are not scattered
  bool broadcast_buffers = true;          // rank 0's, before each forward that is synchronised
  bool init_sync = true;  // compare models across ranks, then take rank 0's parameters and buffers
  dist::ProcessGroup process_group = {};     // empty: the default group
  std::optional<double> bucket_cap_mb = {};  // MiB; default 25, and 1 for the first bucket
  std::vector<double> bucket_cap_mb_list =
      {};  // MiB of the first, second, ... bucket; the last repeats
  bool find_unused_parameters = false;
  bool check_reduction = false;  // without effect, as in Python
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  bool skip_all_reduce_unused_params = false;
  // Full names of parameters and buffers that DDP leaves alone.
  // Python: _set_params_and_buffers_to_ignore_for_model.
  std::set<std::string> ignored_parameters = {};
};

struct JoinOptions {
  bool divide_by_initial_world_size = true;  // false: by the number of ranks that still have data
  bool enable = true;
  bool throw_on_early_termination = false;  // on all ranks, when the first one runs out of data
};

// Parameters that took no part in the loss of the last step; names them. Thrown by the next
// forward, as in Python. Cure: find_unused_parameters.
class UnusedParametersError : public dist::DistStateError {
  using DistStateError::DistStateError;
};
// From all ranks with JoinOptions::throw_on_early_termination: a rank has no more data.
class JoinTerminatedError : public dist::DistStateError {
  using DistStateError::DistStateError;
};

}  // namespace cpprun::nn::parallel

/// @file
/// Options and errors of DistributedDataParallel, with the names and defaults of Python's
/// constructor.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn::parallel {

/// Options of DistributedDataParallel, with the names and defaults of Python's constructor.
struct DdpOptions {
  /// Empty, or one CUDA device that holds the whole module; inputs are then moved there. Must be
  /// empty for modules on the CPU or on several devices.
  std::vector<int> device_ids = {};
  std::optional<int> output_device = {};  ///< default: device_ids[0]; for logging only
  int dim = 0;                            ///< no effect: inputs are not scattered
  bool broadcast_buffers = true;  ///< broadcast rank 0's buffers before each synchronised forward
  bool init_sync = true;  ///< compare the models, then broadcast rank 0's parameters and buffers
  dist::ProcessGroup process_group = {};     ///< empty: the default group
  std::optional<double> bucket_cap_mb = {};  ///< MiB; default 25, and 1 for the first bucket
  /// MiB of the first, second, ... bucket; the last one repeats.
  std::vector<double> bucket_cap_mb_list = {};
  /// Mark parameters that the outputs do not depend on as ready at once. Costs a graph traversal
  /// per step.
  bool find_unused_parameters = false;
  bool check_reduction = false;  ///< no effect, as in Python
  /// Gradients are views into the buckets: saves memory of the size of all gradients.
  bool gradient_as_bucket_view = false;
  /// The graph is the same in every step; allows unused and reused parameters without a traversal.
  bool static_graph = false;
  /// Skip unused parameters in the reduction. They must be the same on all ranks, or training
  /// hangs.
  bool skip_all_reduce_unused_params = false;
  /// Full names of parameters and buffers that DDP neither averages nor broadcasts. Python:
  /// _set_params_and_buffers_to_ignore_for_model.
  std::set<std::string> ignored_parameters = {};
};

/// Options of DistributedDataParallel::join(), as in Python.
struct JoinOptions {
  bool divide_by_initial_world_size = true;  ///< false: by the number of ranks that still have data
  bool enable = true;                        ///< false: join() does nothing
  bool throw_on_early_termination = false;   ///< on all ranks, when one has no more data
};

/// Some parameters got no gradient in the last backward; names them. The next forward throws it, as
/// in Python. Remedy: find_unused_parameters.
class UnusedParametersError : public dist::DistStateError {
  using DistStateError::DistStateError;
};
/// Thrown on all ranks if JoinOptions::throw_on_early_termination is set and a rank has no more
/// data.
class JoinTerminatedError : public dist::DistStateError {
  using DistStateError::DistStateError;
};

}  // namespace cpprun::nn::parallel

/// @file
/// NameRule: how load_safetensors() and load_distributed_checkpoint() rename tensors.
#pragma once

#include <string>

namespace cpprun {

/// How a tensor of a file is called in a module. `from` is the beginning of a name in the file and
/// `to` replaces it; each `*` of `from` stands for one part between dots, and the `*` of `to` takes
/// them over in the same order. Empty `to`: the tensor is not used.
struct NameRule {
  /// @{
  /// The beginning of a name in the file, and what replaces it in the module.
  std::string from, to;
  /// @}
  bool is_transposed = false;  ///< swap the two dimensions, as for GPT-2's Conv1D
};

}  // namespace cpprun

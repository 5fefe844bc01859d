// Writes a Value as a pickle that Python's safe torch.load accepts: protocol 2, only with globals
// that torch.save itself uses.
//
// Pure. The caller writes the bytes of tensors, under the names in their TensorRefs.
#pragma once

#include <string>

#include "snapshot_files/pickle/value.hpp"

namespace cpprun::pickle {

// Requires: the reader knows the dtypes of all tensors.
std::string write(const Value& value);

}  // namespace cpprun::pickle

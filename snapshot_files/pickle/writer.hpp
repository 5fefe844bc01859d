// Writes a Value as a pickle that Python's safe torch.load reads: protocol 2, with no other global
// than those that torch.save itself writes.
//
// Pure. The bytes of tensors are the caller's to write, under the names that their TensorRefs give.
#pragma once

#include <string>

#include "snapshot_files/pickle/value.hpp"

namespace cpprun::pickle {

// Requires: dtypes of tensors are those that the reader knows.
std::string write(const Value& value);

}  // namespace cpprun::pickle

// Exports tensors as a .safetensors file: eight bytes of header length, a JSON header, then each
// tensor's elements in row-major order.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/archive/bytes.hpp"
#include "snapshot_files/archive/tensor_file.hpp"

namespace cpprun::archive {

struct NamedTensor {
  std::string name;
  pickle::TensorRef tensor;
};

// All tensors of a tree in its order, named by their keys and positions, joined by `separator`:
// "MODEL_STATE/weight".
std::vector<NamedTensor> tensors_of(const pickle::Value& value, char separator = '/');

// Writes `tensors` of `file` under their names: strided ones in row-major order, shared ones once
// per name. Errors: a dtype that the format lacks (complex), duplicate names, failures of the file
// or the output.
Status write_safetensors(Output& output, const TensorFile& file,
                         const std::vector<NamedTensor>& tensors);

}  // namespace cpprun::archive

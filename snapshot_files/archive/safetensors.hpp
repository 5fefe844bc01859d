// Exports tensors as a .safetensors file: eight bytes of header length, a JSON header, then each
// tensor's elements in row-major order. For other tools; nothing here reads it back.
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

// All tensors of a tree, named by their keys and positions, joined by `separator`:
// "MODEL_STATE/weight". In the order of the tree.
std::vector<NamedTensor> tensors_of(const pickle::Value& value, char separator = '/');

// The same names and elements as `tensors` of `file` have. Strided ones are written in order,
// shared ones once for each name. Error: a dtype that the format does not have (complex), names
// that are there twice, what the file or the output says.
Status write_safetensors(Output& output, const TensorFile& file,
                         const std::vector<NamedTensor>& tensors);

}  // namespace cpprun::archive

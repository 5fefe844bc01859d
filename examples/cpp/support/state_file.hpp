// Files of named values that Python's torch.load opens in its safe mode, and the way back.
// The layout is torch.save's: a zip file with data.pkl and one record per storage.
#pragma once

#include <string>

#include <ATen/core/Dict.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

namespace examples {

// Names to tensors, numbers, strings, or dictionaries of such.
using State = c10::impl::GenericDict;
State new_state();

// Parameters and buffers by name: "first.weight".
State tensors_of(const torch::nn::Module& module);
// Into a module that is already there. Throws std::runtime_error for a name that only one of the
// two has, and for another shape.
void load_tensors(torch::nn::Module& module, const State& tensors);

// Momentum and the like, as one tensor of bytes: Python can't look inside.
at::Tensor bytes_of(const torch::optim::Optimizer& optimizer);
void load_bytes(torch::optim::Optimizer& optimizer, const at::Tensor& bytes);

// Written beside, flushed, renamed: whatever happens, `path` is one whole file, the old or the new.
void save_state(const std::string& path, const State& state);
// Tensors are on the CPU. Throws std::runtime_error that names the file.
State load_state(const std::string& path);

// Sixteen digits that are equal when all parameters and buffers are, bit for bit.
std::string hash_of(const torch::nn::Module& module);

}  // namespace examples

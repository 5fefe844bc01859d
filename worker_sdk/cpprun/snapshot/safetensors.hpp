/// @file
/// Safetensors: reads and writes the files in which models are published. Python counterpart: the
/// package `safetensors`.
///
///     cpprun::load_safetensors(*net, "gpt2/model.safetensors",
///                              {.names = {{"h.*.attn.c_attn.", "blocks.*.qkv.", true},
///                                         {"lm_head.", ""}}});
///     cpprun::save_safetensors(*net, "tuned.safetensors");
///
/// Files may come from untrusted sources: they hold no code, and every length is checked. Do not
/// truncate or overwrite a file while its tensors are in use; replace it by renaming. Errors are
/// std::runtime_error and name the file and the tensor. Reading is safe from several threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/snapshot/name_rule.hpp"

namespace torch::nn {
class Module;
}

namespace cpprun {

/// The tensors of a model, in one file or in several with an index.
class Safetensors {
 public:
  /// `path`: a .safetensors file, a model.safetensors.index.json, or a folder with either. Reads
  /// and checks the headers only.
  explicit Safetensors(const std::string& path);
  ~Safetensors();
  /// Moves the open files. Afterwards the other object may only be assigned to or destroyed.
  Safetensors(Safetensors&&) noexcept;
  /// As the move constructor; closes the files that this object had.
  Safetensors& operator=(Safetensors&&) noexcept;

  std::vector<std::string> names() const;  ///< sorted
  /// True if a file has a tensor of this name.
  bool contains(const std::string& name) const;
  /// The sizes of a tensor's dimensions; empty for a scalar.
  std::vector<int64_t> shape(const std::string& name) const;
  /// The dtype under torch's name, as "bfloat16".
  std::string dtype(const std::string& name) const;
  /// On the CPU, in the memory that the file is mapped to: nothing is read before it is used.
  /// Writing changes this process's copy only. It may outlive this object.
  at::Tensor tensor(const std::string& name) const;
  /// Overwrites `into`, which has the same shape, any device and any dtype.
  void read(const std::string& name, const at::Tensor& into) const;
  /// The texts of the files' `__metadata__`.
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Options of load_safetensors().
struct LoadSafetensorsOptions {
  /// The first rule that fits a name applies; other names stay as they are.
  std::vector<NameRule> names = {};
  /// A tensor that only the file or only the module has is an error. A parameter that the module
  /// has under several names needs one of them only: published files keep tied weights once.
  bool strict = true;
  /// Otherwise floating-point numbers may have another precision in the module, as in Python's
  /// load_state_dict.
  bool exact_dtype = false;
};

/// Loads parameters and buffers, on any device. Overwrites nothing if any name, shape or dtype is
/// wrong. Throws std::invalid_argument for a rule that makes no sense.
void load_safetensors(torch::nn::Module& module, const std::string& path,
                      const LoadSafetensorsOptions& options = {});

/// Writes a temporary file, flushes it and renames it. Tensors may be on any device, of any
/// strides.
void save_safetensors(const std::map<std::string, at::Tensor>& tensors, const std::string& path,
                      const std::map<std::string, std::string>& metadata = {});
/// Parameters and buffers, tied ones once, under their first name; their other names are in the
/// metadata, as with Python's save_model.
void save_safetensors(const torch::nn::Module& module, const std::string& path);

}  // namespace cpprun

// Loads a module from the tensors of a file by their names: load_safetensors and
// load_distributed_checkpoint. Private to snapshot. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/snapshot/name_rule.hpp"

namespace torch::nn {
class Module;
}

namespace cpprun::snapshot {

// The tensors of a file. All throw std::runtime_error, which names the file and the tensor.
class NamedTensors {
 public:
  virtual ~NamedTensors() = default;
  virtual std::vector<std::string> names() const = 0;
  virtual std::vector<int64_t> shape(const std::string& name) const = 0;
  virtual std::string dtype(const std::string& name) const = 0;  // as torch spells it
  // Overwrites `into`, which has the same shape.
  virtual void read(const std::string& name, const at::Tensor& into) const = 0;
};

// A reader of the public interface, such as Safetensors, which the caller keeps alive.
template <class File>
class TensorsOf final : public NamedTensors {
 public:
  explicit TensorsOf(const File& file) : file_(file) {}
  std::vector<std::string> names() const override { return file_.names(); }
  std::vector<int64_t> shape(const std::string& name) const override { return file_.shape(name); }
  std::string dtype(const std::string& name) const override { return file_.dtype(name); }
  void read(const std::string& name, const at::Tensor& into) const override {
    file_.read(name, into);
  }

 private:
  const File& file_;
};

struct LoadRules {
  std::string prefix;  // only tensors whose name begins with it are used, and by the rest
  std::vector<NameRule> names;
  bool strict = true;
  bool exact_dtype = false;
};

// Throws std::invalid_argument for a rule that makes no sense. `call`: the function's name.
void check_rules(const char* call, const std::vector<NameRule>& rules);

// Overwrites nothing if a name, shape or dtype does not fit; throws std::runtime_error then, with
// all that do not. Requires: checked rules.
void load_by_name(const torch::nn::Module& module, const NamedTensors& file,
                  const std::string& path, const LoadRules& rules);

// "[2, 3]".
std::string shown(const at::IntArrayRef& shape);

}  // namespace cpprun::snapshot

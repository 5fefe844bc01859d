// Modules, saved as Python's state_dict: names to tensors.
#include <torch/nn/module.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "cpprun/snapshot/state/module_tensors.hpp"
#include "cpprun/snapshot/state/names.hpp"
#include "cpprun/snapshot/state/tracked.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::Dict;
using pickle::TensorRef;
using pickle::Value;

Value save(const torch::nn::Module& module, Capture& capture) {
  Dict dict;
  for (const Named& each : tensors_of(module)) {
    dict.pairs.emplace_back(each.name, capture.add(each.tensor, each.is_buffer));
  }
  return dict;
}

// Collects mismatches, with the words of Python's load_state_dict.
class Misfits {
 public:
  void add(const std::string& what, const std::string& name) {
    std::string& list = lists_[what];
    list += (list.empty() ? "" : ", ") + name;
  }
  void check() const {
    std::string text;
    for (const auto& [what, names] : lists_)
      text += (text.empty() ? "" : "; ") + what + ": " + names;
    if (!text.empty()) throw std::runtime_error("the file is of another module: " + text);
  }

 private:
  std::map<std::string, std::string> lists_;
};

std::string shapes(const at::Tensor& tensor, const TensorRef& ref) {
  std::ostringstream text;
  text << " (" << at::IntArrayRef(ref.sizes) << " in the file, " << tensor.sizes() << " here)";
  return text.str();
}

void load(const torch::nn::Module& module, bool is_strict, const Value& value,
          const Storages& storages) {
  const Dict& dict = as<Dict>(value, "a state_dict");
  const std::vector<Named> mine = tensors_of(module);
  std::set<std::string> wanted, used;
  for (const Named& each : mine) wanted.insert(each.name);
  std::vector<std::string> in_file;
  for (const auto& [key, held] : dict.pairs) {
    if (const auto* name = key.get_if<std::string>()) in_file.push_back(*name);
  }
  const auto names = align(in_file, wanted);
  Misfits misfits;
  std::vector<std::pair<at::Tensor, const TensorRef*>> pairs;
  for (const Named& each : mine) {
    const auto found = names.find(each.name);
    if (found == names.end()) {
      if (is_strict) misfits.add("missing", each.name);
      continue;
    }
    used.insert(found->second);
    const auto* ref = dict.find_as<TensorRef>(found->second);
    if (ref == nullptr) {
      misfits.add("no tensor", each.name);
    } else if (each.tensor.sizes() != at::IntArrayRef(ref->sizes)) {
      misfits.add("of another shape", each.name + shapes(each.tensor, *ref));
    } else {
      pairs.emplace_back(each.tensor, ref);
    }
  }
  for (const std::string& name : in_file) {
    if (is_strict && !used.contains(name)) misfits.add("unexpected", name);
  }
  misfits.check();  // before any parameter is overwritten
  for (const auto& [tensor, ref] : pairs) fill(tensor, *ref, storages);
}

}  // namespace

std::vector<NamedParameter> named_parameters(const torch::nn::Module& module) {
  std::vector<NamedParameter> all;
  for (const auto& item : module.named_parameters()) all.push_back({item.key(), *item});
  return all;
}

Tracked track_module(torch::nn::Module& module, bool is_strict) {
  return {.name = {},
          .kind = Kind::Module,
          .is_strict = is_strict,
          .object = &module,
          .save = [&module](Capture& capture) { return save(module, capture); },
          .load = [&module, is_strict](
                      const Value& value,
                      const Storages& storages) { load(module, is_strict, value, storages); },
          .trained = [&module] { return tensors_of(module); }};
}

// Goes by class names, because a dozen classes have dropout. Recurrent modules, which have dropout
// as an option, are not detected.
bool draws_random_numbers(const torch::nn::Module& module) {
  const auto all = module.modules();
  return std::ranges::any_of(all, [](const auto& each) {
    const std::string& name = each->name();
    return name.find("Dropout") != std::string::npos || name.find("RReLU") != std::string::npos;
  });
}

bool is_trained(const torch::nn::Module& module) {
  const auto all = module.parameters();
  return std::ranges::any_of(all, [](const auto& each) { return each.requires_grad(); });
}

}  // namespace cpprun::snapshot

#include "cpprun/snapshot/state/load_by_name.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>

#include <ATen/ATen.h>

#include "common/text.hpp"
#include "cpprun/snapshot/state/module_tensors.hpp"

namespace cpprun::snapshot {
namespace {

// The parts that the stars of `pattern` stand for, if `name` begins with the pattern. `length`: of
// that beginning.
std::optional<std::vector<std::string>> match(const std::string& pattern, const std::string& name,
                                              size_t& length) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (const char c : pattern) {
    if (c != '*') {
      if (at >= name.size() || name[at] != c) return std::nullopt;
      ++at;
      continue;
    }
    const size_t end = std::min(name.find('.', at), name.size());
    if (end == at) return std::nullopt;
    parts.push_back(name.substr(at, end - at));
    at = end;
  }
  length = at;
  return parts;
}

size_t stars(const std::string& text) { return static_cast<size_t>(std::ranges::count(text, '*')); }

struct Renamed {
  std::string name;  // in the module; empty: the tensor is not used
  bool is_transposed = false;
};

Renamed rename(const std::vector<NameRule>& rules, const std::string& name) {
  for (const NameRule& rule : rules) {
    size_t length = 0;
    const auto parts = match(rule.from, name, length);
    if (!parts) continue;
    if (rule.to.empty()) return {};
    std::string text;
    size_t next = 0;
    for (const char c : rule.to) c == '*' ? text += (*parts)[next++] : text += c;
    return {text + name.substr(length), rule.is_transposed};
  }
  return {name};
}

// Plans what is overwritten, and collects everything that does not fit.
class LoadPlan {
 public:
  LoadPlan(const torch::nn::Module& module, const NamedTensors& file, const LoadRules& rules)
      : file_(file), rules_(rules), mine_(tensors_of(module)) {
    for (const std::string& name : file.names()) {
      if (!name.starts_with(rules.prefix)) continue;
      has_prefix_ = true;
      add(name);
    }
    if (rules.strict) find_missing();
  }
  void check(const std::string& path) const {
    if (!has_prefix_ && !rules_.prefix.empty()) {
      throw std::runtime_error(path + ": no tensor's name begins with '" + rules_.prefix + "'");
    }
    std::string text;
    for (const auto& [what, names] : misfits_)
      text += (text.empty() ? "" : "; ") + what + ": " + names;
    if (!text.empty()) throw std::runtime_error(path + ": it does not fit the module: " + text);
  }
  void run() const {
    const at::NoGradGuard no_grad;
    for (const auto& [name, into] : steps_) file_.read(name, into);
  }

 private:
  void misfit(const std::string& what, const std::string& name) {
    std::string& list = misfits_[what];
    list += (list.empty() ? "" : ", ") + text::printable(name);
  }
  void add(const std::string& in_file) {
    const Renamed to = rename(rules_.names, in_file.substr(rules_.prefix.size()));
    if (to.name.empty()) return;
    const auto own = std::ranges::find(mine_, to.name, &Named::name);
    if (own == mine_.end()) {
      if (rules_.strict) misfit("unexpected", in_file);
      return;
    }
    const std::string shown_name =
        to.name == in_file ? in_file : to.name + " (in the file " + in_file + ")";
    if (!loaded_.insert(to.name).second) return misfit("twice in the file", shown_name);
    const bool turns = to.is_transposed && own->tensor.dim() == 2;
    const at::Tensor into = turns ? own->tensor.detach().t() : own->tensor.detach();
    const std::vector<int64_t> shape = file_.shape(in_file);
    if (into.sizes() != at::IntArrayRef(shape)) {
      return misfit("of another shape", shown_name + " (" + shown(shape) + " in the file, " +
                                            shown(into.sizes()) + " here)");
    }
    const auto type = c10::getStringToDtypeMap().at(file_.dtype(in_file));
    const bool may_convert =
        !rules_.exact_dtype && at::isFloatingType(type) && at::isFloatingType(into.scalar_type());
    if (type != into.scalar_type() && !may_convert) {
      return misfit("of another dtype",
                    shown_name + " (" + file_.dtype(in_file) + " in the file, " +
                        std::string(c10::getDtypeNames(into.scalar_type()).first) + " here)");
    }
    steps_.emplace_back(in_file, into);
    written_.insert(own->tensor.unsafeGetTensorImpl());
  }
  void find_missing() {
    for (const Named& each : mine_) {
      if (loaded_.contains(each.name)) continue;
      if (!written_.contains(each.tensor.unsafeGetTensorImpl())) misfit("missing", each.name);
    }
  }

  const NamedTensors& file_;
  const LoadRules& rules_;
  const std::vector<Named> mine_;
  std::set<std::string> loaded_;             // names in the module
  std::set<const at::TensorImpl*> written_;  // their tensors, which may have other names
  std::vector<std::pair<std::string, at::Tensor>> steps_;  // name in the file, target
  std::map<std::string, std::string> misfits_;
  bool has_prefix_ = false;
};

}  // namespace

std::string shown(const at::IntArrayRef& shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

void check_rules(const char* call, const std::vector<NameRule>& rules) {
  for (const NameRule& rule : rules) {
    if (!rule.from.empty() && stars(rule.to) <= stars(rule.from)) continue;
    throw std::invalid_argument(std::string(call) + ": the rule from '" + rule.from + "' to '" +
                                rule.to + "' has an empty beginning or a * without a counterpart");
  }
}

void load_by_name(const torch::nn::Module& module, const NamedTensors& file,
                  const std::string& path, const LoadRules& rules) {
  const LoadPlan plan(module, file, rules);
  plan.check(path);
  plan.run();
}

}  // namespace cpprun::snapshot

// Optimizers, saved as Python's state_dict: {"state": {0: {...}}, "param_groups": [...]}, with the
// names of the parameters as "param_names", as Python does for named parameters.
#include <torch/serialize/archive.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "cpprun/snapshot/state/names.hpp"
#include "cpprun/snapshot/state/optimizer_kinds.hpp"
#include "cpprun/snapshot/state/sharded_states.hpp"
#include "cpprun/snapshot/state/tracked.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::Dict;
using pickle::List;
using pickle::TensorRef;
using pickle::Tuple;
using pickle::Value;
using torch::optim::Optimizer;

using Names = std::map<const void*, std::string>;  // by TensorImpl
using Betas = std::tuple<double, double>;
constexpr int64_t kFloatExact = 1 << 24;  // float32 holds all integers up to here

[[noreturn]] void refuse(const std::string& why) {
  throw std::runtime_error("the file is of another optimizer: " + why);
}

const Value& at(const Dict& dict, const char* key) {
  const Value* found = dict.find(key);
  if (found == nullptr) refuse(std::string("it has no '") + key + "'");
  return *found;
}

template <class T>
const T& item_as(const Value& value, const char* what) {
  const T* held = value.get_if<T>();
  if (held == nullptr) refuse(std::string(what) + " is a " + kind_name(value));
  return *held;
}

// Saves the fields of options and states.
struct Saving {
  Dict& dict;
  Capture& capture;
  void operator()(const char* name, double value) { dict.pairs.emplace_back(name, value); }
  void operator()(const char* name, bool value) { dict.pairs.emplace_back(name, value); }
  void operator()(const char* name, const Betas& betas) {
    dict.pairs.emplace_back(name, Tuple{{std::get<0>(betas), std::get<1>(betas)}});
  }
  // Python keeps the step count in a tensor.
  void operator()(const char* name, int64_t steps) {
    const auto type = steps < kFloatExact ? at::kFloat : at::kDouble;
    dict.pairs.emplace_back(name, capture.add(at::scalar_tensor(static_cast<double>(steps), type)));
  }
  void operator()(const char* name, const at::Tensor& tensor) {
    if (tensor.defined()) dict.pairs.emplace_back(name, capture.add(tensor));
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value) {
    dict.pairs.emplace_back(name, value ? Value(*value) : Value(pickle::None{}));
  }
  void operator()(const char* name, WholeNumber number) {
    dict.pairs.emplace_back(name, number.value);
  }
  void operator()(const char* name, LateNumber number) {
    dict.pairs.emplace_back(name, number.value);
  }
  void operator()(const char* name, OneElement one) { (*this)(name, one.tensor); }
  void operator()(const char* name, const TensorList& list) {
    List all;
    for (const at::Tensor& each : list.tensors) all.items.emplace_back(capture.add(each));
    dict.pairs.emplace_back(name, std::move(all));
  }
};

struct Loading {
  const Dict& dict;
  const Storages& storages;
  at::Tensor parameter = {};        // undefined for options
  std::vector<int64_t> shape = {};  // of the state's tensors
  void operator()(const char* name, double& value) { value = number_of(at(dict, name), storages); }
  void operator()(const char* name, bool& value) {
    value = number_of(at(dict, name), storages) != 0;
  }
  void operator()(const char* name, Betas& betas) {
    const Value& held = at(dict, name);
    const pickle::Values& items =
        held.items() != nullptr ? *held.items() : item_as<List>(held, name).items;
    if (items.size() != 2) refuse("betas are not two");
    betas = {number_of(items[0], storages), number_of(items[1], storages)};
  }
  void operator()(const char* name, int64_t& steps) {
    steps = static_cast<int64_t>(number_of(at(dict, name), storages));
  }
  // Python omits an undefined tensor or writes None.
  void operator()(const char* name, at::Tensor& tensor) {
    const auto* ref = dict.find_as<TensorRef>(name);
    tensor = ref == nullptr ? at::Tensor() : read(name, *ref, shape);
  }
  void operator()(const char* name, std::optional<int64_t>& value) {
    const Value& held = at(dict, name);
    value.reset();
    if (held.get_if<pickle::None>() == nullptr) (*this)(name, value.emplace());
  }
  void operator()(const char* name, std::optional<std::string>& value) {
    const Value& held = at(dict, name);
    value.reset();
    if (held.get_if<pickle::None>() == nullptr) value = item_as<std::string>(held, name);
  }
  void operator()(const char* name, WholeNumber number) { (*this)(name, number.value); }
  void operator()(const char* name, LateNumber number) {
    const Value* held = dict.find(name);
    const bool is_there = held != nullptr && held->get_if<pickle::None>() == nullptr;
    number.value = is_there ? number_of(*held, storages) : 0;
  }
  void operator()(const char* name, OneElement one) {
    const Value* held = dict.find(name);
    one.tensor = held == nullptr ? at::Tensor() : element(name, *held);
  }
  void operator()(const char* name, const TensorList& list) {
    list.tensors.clear();
    if (dict.find(name) == nullptr) return;
    for (const Value& each : item_as<List>(at(dict, name), name).items) {
      list.tensors.push_back(list.has_one_element_each
                                 ? element(name, each)
                                 : read(name, item_as<TensorRef>(each, name), shape));
    }
  }

 private:
  at::Tensor read(const char* name, const TensorRef& ref, const std::vector<int64_t>& wanted) {
    if (ref.sizes != wanted) {
      std::ostringstream text;
      text << name << " has the shape " << at::IntArrayRef(ref.sizes) << ", "
           << (wanted == parameter.sizes() ? "its parameter has " : "the parameters need ")
           << at::IntArrayRef(wanted);
      refuse(text.str());
    }
    return as_state(make_tensor(ref, storages));
  }
  at::Tensor element(const char* name, const Value& held) {
    if (const auto* ref = held.get_if<TensorRef>()) return read(name, *ref, {});
    return as_state(at::scalar_tensor(number_of(held, storages)));
  }
  // As in Python, state takes the device and dtype that the parameter has now.
  at::Tensor as_state(const at::Tensor& tensor) const {
    const at::Tensor moved = tensor.to(parameter.device());
    return parameter.is_floating_point() ? moved.to(parameter.scalar_type()) : moved;
  }
};

template <class Kind>
Value save_groups(Optimizer& optimizer, const Names& names, Capture& capture, Kind kind) {
  const auto others = states_of_other_ranks(optimizer, kind);
  Dict state;
  List groups;
  int64_t number = 0;
  for (auto& group : optimizer.param_groups()) {
    Dict options;
    fields(static_cast<typename Kind::GroupOptions&>(group.options()), Saving{options, capture});
    for (auto& extra : python_extras<typename Kind::GroupOptions>()) {
      options.pairs.emplace_back(std::move(extra));
    }
    List params, param_names;
    for (const at::Tensor& parameter : group.params()) {
      auto* held = state_of<Kind>(optimizer, parameter);
      const auto other = others.find(parameter.unsafeGetTensorImpl());
      if (held == nullptr && other != others.end()) held = other->second.get();
      if (held != nullptr) {
        Dict own;
        fields(*held, Saving{own, capture});
        state.pairs.emplace_back(number, std::move(own));
      }
      params.items.emplace_back(number++);
      const auto name = names.find(parameter.unsafeGetTensorImpl());
      if (name != names.end()) param_names.items.emplace_back(name->second);
    }
    if (param_names.items.size() == params.items.size()) {
      options.pairs.emplace_back("param_names", std::move(param_names));
    }
    options.pairs.emplace_back("params", std::move(params));
    groups.items.emplace_back(std::move(options));
  }
  return Dict{{{"state", std::move(state)}, {"param_groups", std::move(groups)}}};
}

struct FileGroup {
  const Dict* options;
  std::vector<int64_t> ids;
  std::vector<std::string> names;  // empty, or one for each id
};

std::vector<FileGroup> read_groups(const Dict& dict) {
  std::vector<FileGroup> groups;
  for (const Value& item : item_as<List>(at(dict, "param_groups"), "param_groups").items) {
    FileGroup group{&item_as<Dict>(item, "a group"), {}, {}};
    for (const Value& id : item_as<List>(at(*group.options, "params"), "params").items) {
      group.ids.push_back(item_as<int64_t>(id, "a parameter's number"));
    }
    if (const Value* names = group.options->find("param_names")) {
      for (const Value& name : item_as<List>(*names, "param_names").items) {
        group.names.push_back(item_as<std::string>(name, "a name"));
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// Number in the file of each of our parameters that the file has.
using Ids = std::map<const void*, int64_t>;

Ids ids_by_name(const std::vector<FileGroup>& groups, const Names& names) {
  std::vector<std::string> in_file;
  std::vector<int64_t> numbers;
  for (const FileGroup& group : groups) {
    in_file.insert(in_file.end(), group.names.begin(), group.names.end());
    numbers.insert(numbers.end(), group.ids.begin(), group.ids.end());
  }
  std::set<std::string> wanted;
  for (const auto& [parameter, name] : names) wanted.insert(name);
  const auto aligned = align(in_file, wanted);
  Ids ids;
  for (const auto& [parameter, name] : names) {
    const auto found = aligned.find(name);
    if (found == aligned.end()) continue;
    const auto place = std::find(in_file.begin(), in_file.end(), found->second);
    ids[parameter] = numbers[static_cast<size_t>(place - in_file.begin())];
  }
  return ids;
}

Ids ids_by_position(const std::vector<FileGroup>& groups, const Optimizer& optimizer) {
  Ids ids;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& own = optimizer.param_groups()[i].params();
    if (own.size() != groups[i].ids.size()) {
      refuse("group " + std::to_string(i) + " has " + std::to_string(groups[i].ids.size()) +
             " parameters without names, this one has " + std::to_string(own.size()) +
             "; track(optimizer, model) keeps names, which survive a change of the model");
    }
    for (size_t j = 0; j < own.size(); ++j) ids[own[j].unsafeGetTensorImpl()] = groups[i].ids[j];
  }
  return ids;
}

Ids match(const std::vector<FileGroup>& groups, const Optimizer& optimizer, const Names& names) {
  const auto& own = optimizer.param_groups();
  if (groups.size() != own.size()) {
    refuse("it has " + std::to_string(groups.size()) + " parameter groups, this one has " +
           std::to_string(own.size()));
  }
  const bool is_named = std::ranges::all_of(
      groups, [](const FileGroup& group) { return group.names.size() == group.ids.size(); });
  const bool knows_all = std::ranges::all_of(own, [&](const auto& group) {
    return std::ranges::all_of(group.params(), [&](const at::Tensor& each) {
      return names.contains(each.unsafeGetTensorImpl());
    });
  });
  if (!is_named || !knows_all) return ids_by_position(groups, optimizer);
  Ids ids = ids_by_name(groups, names);
  // Names have the module's before them only if several modules were tracked.
  return ids.empty() ? ids_by_position(groups, optimizer) : ids;
}

// Of the tensors of the state that is kept for `parameter`.
template <class Kind>
std::vector<int64_t> shape_of_state(const Optimizer& optimizer, const at::Tensor& parameter) {
  if constexpr (!JointState<typename Kind::ParamState>) return parameter.sizes().vec();
  int64_t all = 0;
  for (const at::Tensor& each : optimizer.param_groups()[0].params()) all += each.numel();
  return {all};
}

// The elements of a joint state are in the order of the parameters.
void check_same_parameters(const std::vector<FileGroup>& groups, const Ids& ids,
                           const Optimizer& optimizer) {
  std::vector<int64_t> own;
  for (const at::Tensor& each : optimizer.param_groups()[0].params()) {
    const auto found = ids.find(each.unsafeGetTensorImpl());
    own.push_back(found == ids.end() ? -1 : found->second);
  }
  if (own != groups[0].ids) {
    refuse("it has other parameters, or in another order, and LBFGS has one state for all of them");
  }
}

// Refuses options of Python that LibTorch's optimizers lack.
void check_extras(const Dict& options, const Extras& extras, const Storages& storages) {
  for (const auto& [name, ours] : extras) {
    const Value* theirs = options.find(name);
    if (name != "maximize" && name != "decoupled_weight_decay") continue;
    const bool is_set = theirs != nullptr && number_of(*theirs, storages) != 0;
    if (theirs != nullptr && is_set != *ours.get_if<bool>()) {
      refuse("its '" + name + "' is " + (is_set ? "True" : "False"));
    }
  }
}

template <class Kind>
void load_groups(Optimizer& optimizer, const Names& names, const Dict& dict,
                 const Storages& storages, Kind) {
  using State = typename Kind::ParamState;
  const auto groups = read_groups(dict);
  const Ids ids = match(groups, optimizer, names);
  if constexpr (JointState<State>) check_same_parameters(groups, ids, optimizer);
  std::map<int64_t, const Dict*> in_file;
  for (const auto& [key, held] : item_as<Dict>(at(dict, "state"), "state").pairs) {
    in_file[item_as<int64_t>(key, "a key of the state")] = &item_as<Dict>(held, "a state");
  }
  std::vector<std::pair<void*, std::unique_ptr<State>>> states;  // null: no state in the file
  auto* const sharded = dynamic_cast<optim::ShardedOptimizer*>(&optimizer);
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      const auto id = ids.find(parameter.unsafeGetTensorImpl());
      if (id == ids.end()) continue;  // a new parameter keeps its state
      if (sharded != nullptr && !sharded->is_own(parameter)) continue;
      auto& [key, state] = states.emplace_back(parameter.unsafeGetTensorImpl(), nullptr);
      const auto found = in_file.find(id->second);
      if (found == in_file.end()) continue;
      state = std::make_unique<State>();
      fields(*state, Loading{*found->second, storages, parameter,
                             shape_of_state<Kind>(optimizer, parameter)});
    }
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    using Options = typename Kind::GroupOptions;
    check_extras(*groups[i].options, python_extras<Options>(), storages);
    fields(static_cast<Options&>(optimizer.param_groups()[i].options()),
           Loading{*groups[i].options, storages});
  }
  for (auto& [key, state] : states) {
    if (state)
      optimizer.state()[key] = std::move(state);
    else
      optimizer.state().erase(key);
  }
}

// Lists the tensors of a state.
struct Listing {
  std::vector<Named>& all;
  const std::string prefix;
  void operator()(const char*, int64_t) {}
  void operator()(const char* name, const at::Tensor& tensor) {
    if (tensor.defined()) all.push_back({prefix + name, tensor});
  }
  void operator()(const char*, WholeNumber) {}
  void operator()(const char*, LateNumber) {}
  void operator()(const char* name, OneElement one) { (*this)(name, one.tensor); }
  void operator()(const char* name, const TensorList& list) {
    for (const at::Tensor& each : list.tensors) (*this)(name, each);
  }
};

// Those of this rank, under Python's names: "state.0.exp_avg".
std::vector<Named> state_tensors(Optimizer& optimizer) {
  std::vector<Named> all;
  with_kind(optimizer, [&]<class Kind>(Kind) {
    int64_t number = 0;
    for (auto& group : optimizer.param_groups()) {
      for (const at::Tensor& parameter : group.params()) {
        auto* const held = state_of<Kind>(optimizer, parameter);
        const std::string prefix = "state." + std::to_string(number++) + ".";
        if (held != nullptr) fields(*held, Listing{all, prefix});
      }
    }
  });
  return all;
}

// Other optimizers: LibTorch's own archive, as bytes.
constexpr const char* kArchive = "libtorch_archive";

Value save_archive(const Optimizer& optimizer, Capture& capture) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  const std::string bytes = stream.str();
  at::Tensor tensor = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.data_ptr()));
  return Dict{{{kArchive, capture.add(tensor)}}};
}

void load_archive(Optimizer& optimizer, const Dict& dict, const Storages& storages) {
  const auto bytes = make_tensor(item_as<TensorRef>(at(dict, kArchive), kArchive), storages);
  torch::serialize::InputArchive archive;
  archive.load_from(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes());
  optimizer.load(archive);
}

}  // namespace

Tracked track_optimizer(Optimizer& optimizer, std::vector<NamedParameter> given) {
  if (dynamic_cast<optim::ShardedOptimizer*>(&optimizer) != nullptr &&
      !with_kind(optimizer, [](auto) {})) {
    throw std::invalid_argument(
        "a ZeroRedundancyOptimizer can be tracked if it is of SGD, Adam, AdamW, Adagrad or "
        "RMSprop; "
        "the parts of another class can't be put together");
  }
  Names names;
  for (const auto& each : given) names.emplace(each.tensor.unsafeGetTensorImpl(), each.name);
  return {.name = {},
          .kind = Kind::Optimizer,
          .object = &optimizer,
          .save =
              [&optimizer, names](Capture& capture) {
                Value value;
                const bool is_known = with_kind(optimizer, [&](auto kind) {
                  value = save_groups(optimizer, names, capture, kind);
                });
                return is_known ? value : save_archive(optimizer, capture);
              },
          .load =
              [&optimizer, names](const Value& value, const Storages& storages) {
                const Dict& dict = item_as<Dict>(value, "the state");
                const bool is_known = with_kind(optimizer, [&](auto kind) {
                  load_groups(optimizer, names, dict, storages, kind);
                });
                if (!is_known) load_archive(optimizer, dict, storages);
              },
          .trained = [&optimizer] { return state_tensors(optimizer); }};
}

}  // namespace cpprun::snapshot

#include "cpprun/snapshot/state/state_layout.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

#include "common/text.hpp"
#include "cpprun/snapshot/state/names.hpp"
#include "snapshot_files/folders/manifest.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::Dict;
using pickle::List;
using pickle::Value;
using snapshot_files::kModelName;
using snapshot_files::kOptimizerName;
using snapshot_files::rank_file_name;

constexpr int64_t kFormat = 1;

size_t modules_of(const std::vector<Tracked>& tracked) {
  return static_cast<size_t>(std::ranges::count(tracked, Kind::Module, &Tracked::kind));
}

std::string key_of(const Tracked& tracked, bool is_single) {
  return is_single && !tracked.is_per_rank ? single_key(tracked) : tracked.name;
}

// No state: a module without a communication hook, for example.
bool is_empty(const Value& value) {
  const auto* dict = value.get_if<Dict>();
  return dict != nullptr && dict->pairs.empty();
}

// Whether model.pt has several modules by name; else it is the state_dict of the only one.
bool has_names(const Value& models) {
  const auto* dict = models.get_if<Dict>();
  return dict != nullptr && !dict->pairs.empty() &&
         std::ranges::all_of(dict->pairs, [](const auto& pair) {
           return pair.second.template get_if<Dict>() != nullptr;
         });
}

// Whether the state_dict has the module's tensors and no others.
bool fits(const Tracked& module, const Value& state) {
  const auto* dict = state.get_if<Dict>();
  if (dict == nullptr) return false;
  const std::vector<Named> mine = module.trained();
  std::set<std::string> wanted;
  for (const Named& each : mine) wanted.insert(each.name);
  std::vector<std::string> in_file;
  for (const auto& [key, held] : dict->pairs) {
    if (const auto* name = key.get_if<std::string>()) in_file.push_back(*name);
  }
  const auto names = align(in_file, wanted);
  return names.size() == in_file.size() && std::ranges::all_of(mine, [&](const Named& each) {
           const auto name = names.find(each.name);
           const auto* ref =
               name == names.end() ? nullptr : dict->find_as<pickle::TensorRef>(name->second);
           return ref != nullptr && each.tensor.sizes() == at::IntArrayRef(ref->sizes);
         });
}

// The module of which a Snapshot that tracked no other has saved `state`. Throws
// std::runtime_error: several fit, or none.
const Tracked* only_module(const std::vector<Tracked>& tracked, const Value& state) {
  std::vector<const Tracked*> modules, fitting;
  for (const Tracked& each : tracked) {
    if (each.kind == Kind::Module) modules.push_back(&each);
  }
  if (modules.size() < 2) return modules.empty() ? nullptr : modules[0];
  std::vector<std::string> names;
  for (const Tracked* each : modules) {
    if (!fits(*each, state)) continue;
    fitting.push_back(each);
    names.push_back("'" + each->name + "'");
  }
  if (fitting.size() == 1) return fitting[0];
  const auto named =
      std::ranges::find(fitting, "model", [](const auto* each) { return each->name; });
  if (named != fitting.end()) return *named;  // the default
  throw std::runtime_error(
      "the snapshot has one module and no name of it, because no other was tracked; " +
      (fitting.empty() ? "none of the tracked modules has the same tensors"
                       : text::join(names, " and ") + " have the same tensors") +
      ": resume with a Snapshot that tracks this module only, and save with one that has another "
      ".dir");
}

// Finds the saved value of a tracked object in either form.
class Finder {
 public:
  Finder(const std::vector<Tracked>& tracked, bool is_single, int rank, const Loaded& loaded)
      : is_single_(is_single) {
    shared_ = file(loaded, is_single ? kSingleName : kOptimizerName);
    models_ = file(loaded, is_single ? kSingleName : kModelName);
    if (!is_single && models_ != nullptr && !has_names(models_->value)) {
      whole_ = only_module(tracked, models_->value);
    }
    // An in-memory snapshot of the single-file form has a rank file too.
    own_ = file(loaded, rank_file_name(rank).c_str());
    if (!is_single || own_ != nullptr) {
      own_dict_ = own_ == nullptr ? nullptr : own_->value.get_if<Dict>();
      return;
    }
    own_ = shared_;
    const auto* list = shared_ == nullptr ? nullptr : shared_->value.find_as<List>(kRanksKey);
    if (list != nullptr && static_cast<size_t>(rank) < list->items.size()) {
      own_dict_ = list->items[static_cast<size_t>(rank)].get_if<Dict>();
    }
  }

  struct Found {
    const Value* value = nullptr;
    const Storages* storages = nullptr;
  };
  Found find(const Tracked& each) const {
    if (each.is_per_rank) {
      const Value* value = own_dict_ == nullptr ? nullptr : own_dict_->find(each.name);
      return {value, own_ == nullptr ? nullptr : own_->storages.get()};
    }
    const LoadedFile* where = each.kind == Kind::Module ? models_ : shared_;
    if (where == nullptr) return {};
    return {&each == whole_ ? &where->value : find(where, key_of(each, is_single_)),
            where->storages.get()};
  }
  const Value* counter(const char* key) const { return find(shared_, key); }
  const Storages* counter_storages() const { return shared_->storages.get(); }
  bool has_own() const { return own_dict_ != nullptr; }

 private:
  static const LoadedFile* file(const Loaded& loaded, const char* name) {
    const auto found = loaded.find(name);
    return found == loaded.end() ? nullptr : &found->second;
  }
  static const Value* find(const LoadedFile* where, const std::string& key) {
    return where == nullptr ? nullptr : where->value.find(key);
  }

  const bool is_single_;
  const Tracked* whole_ = nullptr;  // the module that model.pt is the state_dict of
  const LoadedFile *shared_ = nullptr, *models_ = nullptr, *own_ = nullptr;
  const Dict* own_dict_ = nullptr;
};

}  // namespace

std::string single_key(const Tracked& tracked) {
  std::string key = tracked.name;
  for (char& c : key) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return tracked.kind == Kind::Value ? key : key + "_STATE";
}

Contents capture(const std::vector<Tracked>& tracked, bool is_single, int rank,
                 const Counters& counters) {
  Capture models, others, own;
  Dict model_dict, other_dict, own_dict;
  const bool is_whole = !is_single && modules_of(tracked) == 1;
  Value only;  // state of the only module
  other_dict.pairs = {
      {kFormatKey, kFormat}, {kStepKey, counters.step}, {kSecondsKey, counters.seconds}};
  for (const Tracked& each : tracked) {
    const std::string key = key_of(each, is_single);
    if (each.is_per_rank || is_single || each.kind != Kind::Module) {
      Value value = each.save(each.is_per_rank ? own : others);
      if (each.is_optional && is_empty(value)) continue;
      (each.is_per_rank ? own_dict : other_dict).pairs.emplace_back(key, std::move(value));
    } else if (is_whole) {
      only = each.save(models);
    } else {
      model_dict.pairs.emplace_back(key, each.save(models));
    }
  }
  Contents contents;
  if (!is_single) {
    contents.shared.push_back({kModelName,
                               is_whole ? std::move(only) : Value(std::move(model_dict)),
                               models.take_storages()});
  }
  contents.shared.push_back(
      {is_single ? kSingleName : kOptimizerName, std::move(other_dict), others.take_storages()});
  contents.own = {rank_file_name(rank), std::move(own_dict), own.take_storages()};
  return contents;
}

Applied apply(const std::vector<Tracked>& tracked, bool is_single, int rank, const Loaded& loaded) {
  const Finder finder(tracked, is_single, rank, loaded);
  Applied applied;
  applied.is_marked = finder.counter(kFormatKey) != nullptr;
  if (const Value* step = finder.counter(kStepKey)) {
    applied.counters.step = static_cast<int64_t>(number_of(*step, *finder.counter_storages()));
  }
  if (const Value* seconds = finder.counter(kSecondsKey.c_str())) {
    applied.counters.seconds = number_of(*seconds, *finder.counter_storages());
  }
  for (const Tracked& each : tracked) {
    const auto found = finder.find(each);
    if (found.value == nullptr && each.is_strict) {
      throw std::runtime_error("the snapshot has no module '" + each.name +
                               "'; track it with {.strict = false} to begin with it as it is");
    }
    if (found.value == nullptr) {
      const bool is_missing = !each.is_optional && (!each.is_per_rank || finder.has_own());
      if (is_missing) applied.missing.push_back(each.name);
      if (each.derive) each.derive(static_cast<uint64_t>(applied.counters.step), rank);
      continue;
    }
    try {
      each.load(*found.value, *found.storages);
    } catch (const std::exception& error) {
      throw std::runtime_error("'" + each.name + "' can't be resumed: " + error.what());
    }
  }
  return applied;
}

}  // namespace cpprun::snapshot

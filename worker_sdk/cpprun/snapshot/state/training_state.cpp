// State of schedulers, samplers and random number generators.
#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <mutex>
#include <stdexcept>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/optim/lr_scheduler.hpp"
#include "cpprun/snapshot/state/tracked.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::Dict;
using pickle::List;
using pickle::TensorRef;
using pickle::Value;

// Whole numbers become int: Python uses them as indices and counts.
Value number(double value) {
  constexpr double kExact = 9007199254740992;
  if (std::trunc(value) == value && std::abs(value) < kExact) return static_cast<int64_t>(value);
  return value;
}

// "base_lrs.0", "base_lrs.1" ... become a list, as in Python.
Value save_scheduler(const optim::LRScheduler& scheduler) {
  Dict dict;
  std::map<std::string, std::map<size_t, double>> lists;
  for (const auto& [name, value] : scheduler.state_dict()) {
    const size_t dot = name.rfind('.');
    const bool is_item = dot != std::string::npos && dot + 1 < name.size() &&
                         name.find_first_not_of("0123456789", dot + 1) == std::string::npos;
    if (is_item)
      lists[name.substr(0, dot)][std::stoul(name.substr(dot + 1))] = value;
    else
      dict.pairs.emplace_back(name, number(value));
  }
  for (const auto& [name, items] : lists) {
    List list;
    for (const auto& [i, value] : items) list.items.push_back(number(value));
    dict.pairs.emplace_back(name, std::move(list));
  }
  return dict;
}

bool is_number(const Value& value) {
  const auto* tensor = value.get_if<TensorRef>();
  const bool is_one = tensor != nullptr &&
                      std::ranges::all_of(tensor->sizes, [](int64_t size) { return size == 1; });
  return is_one || value.get_if<int64_t>() || value.get_if<double>() || value.get_if<bool>();
}

constexpr const char* kMilestones = "milestones";
// Limits what a damaged file can allocate; a real schedule has a few.
constexpr size_t kMostMilestones = 1'000'000;

// Python's MultiStepLR keeps a count of each milestone, {30: 1, 80: 2}; ours keeps a list.
List listed(const Dict& counts) {
  std::vector<int64_t> all;
  for (const auto& [milestone, times] : counts.pairs) {
    const auto* at = milestone.get_if<int64_t>();
    const auto* count = times.get_if<int64_t>();
    if (at == nullptr || count == nullptr || *count < 0 ||
        static_cast<uint64_t>(*count) > kMostMilestones - all.size()) {
      throw std::runtime_error("the file has milestones that no scheduler has");
    }
    all.insert(all.end(), static_cast<size_t>(*count), *at);
  }
  std::sort(all.begin(), all.end());
  List list;
  for (const int64_t milestone : all) list.items.emplace_back(milestone);
  return list;
}

void flatten(const Dict& dict, const std::string& prefix, const Storages& storages,
             optim::SchedulerState& state);

// Takes numbers, and dicts of numbers (the schedulers of a SequentialLR). Our schedulers have no
// field for other items: the phases of a OneCycleLR, None in place of a function.
void flatten_items(const List& list, const std::string& name, const Storages& storages,
                   optim::SchedulerState& state) {
  for (size_t i = 0; i < list.items.size(); ++i) {
    const Value& item = list.items[i];
    const std::string path = name + '.' + std::to_string(i);
    if (const auto* dict = item.get_if<Dict>()) flatten(*dict, path + '.', storages, state);
    if (is_number(item)) state[path] = number_of(item, storages);
  }
}

void flatten(const Dict& dict, const std::string& prefix, const Storages& storages,
             optim::SchedulerState& state) {
  for (const auto& [key, value] : dict.pairs) {
    const auto* name = key.get_if<std::string>();
    if (name == nullptr) continue;
    const auto* counts = *name == kMilestones ? value.get_if<Dict>() : nullptr;
    if (counts != nullptr) flatten_items(listed(*counts), prefix + *name, storages, state);
    if (const auto* list = value.get_if<List>()) {
      flatten_items(*list, prefix + *name, storages, state);
    }
    if (is_number(value)) state[prefix + *name] = number_of(value, storages);
  }
}

// Python's name of our field. Python keeps the current rates only as _last_lr; the schedulers in a
// SequentialLR share an optimizer, and so the rates of the outer one.
std::string python_name(const std::string& name) {
  const size_t rates = name.rfind("lr.");
  const bool is_rate = rates == 0 || (rates != std::string::npos && name[rates - 1] == '.');
  return is_rate ? "_last_" + name.substr(rates) : name;
}

// Takes over the file's milestones, the only list whose length may differ from ours.
void take_milestones(optim::SchedulerState& own, const optim::SchedulerState& state,
                     const std::string& owner) {
  const std::string prefix = owner + kMilestones + '.';
  const auto is_one = [&](const auto& each) { return each.first.starts_with(prefix); };
  if (std::none_of(state.begin(), state.end(), is_one)) return;
  std::erase_if(own, is_one);
  std::copy_if(state.begin(), state.end(), std::inserter(own, own.end()), is_one);
}

// Converts the state of a Python scheduler: our fields take Python's values; fields that Python
// lacks keep our values.
optim::SchedulerState from_python(const optim::LRScheduler& scheduler,
                                  const optim::SchedulerState& state) {
  auto own = scheduler.state_dict();
  for (auto& [name, value] : own) {
    const auto found = state.find(python_name(name));
    if (found != state.end()) value = found->second;
  }
  const std::string kind = "kind:MultiStepLR";
  std::vector<std::string> owners;
  for (const auto& [name, value] : own) {
    if (name.ends_with(kind)) owners.push_back(name.substr(0, name.size() - kind.size()));
  }
  for (const std::string& owner : owners) take_milestones(own, state, owner);
  return own;
}

void load_scheduler(optim::LRScheduler& scheduler, const Dict& dict, const Storages& storages) {
  optim::SchedulerState state;
  flatten(dict, "", storages, state);
  const auto kind = state.lower_bound("kind:");
  const bool is_ours = kind != state.end() && kind->first.starts_with("kind:") &&
                       !state.contains("_get_lr_called_within_step");
  scheduler.load_state_dict(is_ours ? state : from_python(scheduler, state));
}

Value save_sampler(const data::DistributedSampler& sampler) {
  const data::SamplerState state = sampler.state();
  return Dict{{{"seed", static_cast<int64_t>(state.seed)},
               {"epoch", state.epoch},
               {"consumed", state.consumed},
               {"size", state.size},
               {"shuffle", state.shuffle}}};
}

void load_sampler(data::DistributedSampler& sampler, const Dict& dict) {
  const auto whole = [&](const char* name) {
    const auto* value = dict.find_as<int64_t>(name);
    if (value == nullptr) {
      throw std::runtime_error(std::string("the sampler's state has no '") + name + "'");
    }
    return *value;
  };
  const auto* is_shuffled = dict.find_as<bool>("shuffle");
  sampler.load_state({.seed = static_cast<uint64_t>(whole("seed")),
                      .epoch = whole("epoch"),
                      .consumed = whole("consumed"),
                      .size = whole("size"),
                      .shuffle = is_shuffled == nullptr || *is_shuffled});
}

Value value_of(const StateValue& value, Capture& capture) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return *whole;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return pickle::text_or_bytes(*text);
  return capture.add(std::get<at::Tensor>(value));
}

StateValue state_value(const Value& value, const Storages& storages) {
  if (const auto* whole = value.get_if<int64_t>()) return *whole;
  if (const auto* truth = value.get_if<bool>()) return static_cast<int64_t>(*truth);
  if (const auto* real = value.get_if<double>()) return *real;
  if (const auto* text = value.get_if<std::string>()) return *text;
  if (const auto* bytes = value.get_if<pickle::Bytes>()) return bytes->bytes;
  return make_tensor(as<TensorRef>(value, "a number, a text or a tensor"), storages);
}

StateDict state_dict_of(const Dict& dict, const Storages& storages) {
  StateDict state;
  for (const auto& [key, value] : dict.pairs) {
    state[as<std::string>(key, "a name")] = state_value(value, storages);
  }
  return state;
}

using Generators = std::vector<std::pair<const char*, at::Device>>;  // name and device

Generators generators_of(int cuda_device) {
  Generators all{{"cpu", at::kCPU}};
  if (cuda_device >= 0) {
    all.emplace_back("cuda", at::Device(at::kCUDA, static_cast<at::DeviceIndex>(cuda_device)));
  }
  return all;
}

// The bytes of Python's get_rng_state and set_rng_state.
at::Tensor generator_state(const at::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Device& device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

// Seeds the generators of a rank of which the snapshot has no state.
void seed_generators(uint64_t step, int rank, const Generators& generators) {
  uint64_t seed = step * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(rank) + 1;  // splitmix64
  seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9;
  seed ^= seed >> 27;
  for (const auto& [name, device] : generators) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    generator.set_current_seed(seed);
  }
}

}  // namespace

double number_of(const Value& value, const Storages& storages) {
  if (const auto* whole = value.get_if<int64_t>()) return static_cast<double>(*whole);
  if (const auto* real = value.get_if<double>()) return *real;
  if (const auto* truth = value.get_if<bool>()) return *truth ? 1 : 0;
  if (const auto* ref = value.get_if<TensorRef>()) {
    const at::Tensor tensor = make_tensor(*ref, storages);
    if (tensor.numel() == 1) return tensor.item<double>();
  }
  throw std::runtime_error(std::string("the file has a ") + kind_name(value) +
                           " where a number belongs");
}

Tracked track_scheduler(optim::LRScheduler& scheduler) {
  return {.name = {},
          .kind = Kind::Scheduler,
          .object = &scheduler,
          .save = [&scheduler](Capture&) { return save_scheduler(scheduler); },
          .load =
              [&scheduler](const Value& value, const Storages& storages) {
                load_scheduler(scheduler, as<Dict>(value, "the scheduler's state"), storages);
              }};
}

Tracked track_sampler(data::DistributedSampler& given) {
  // Copies of a sampler share one state; this copy keeps it alive.
  const auto sampler = std::make_shared<data::DistributedSampler>(given);
  return {.name = {},
          .kind = Kind::Sampler,
          .object = &given,
          .save = [sampler](Capture&) { return save_sampler(*sampler); },
          .load =
              [sampler](const Value& value, const Storages&) {
                load_sampler(*sampler, as<Dict>(value, "the sampler's state"));
              }};
}

Tracked track_state_dict(Kind kind, const void* object, std::function<StateDict()> save,
                         std::function<void(const StateDict&)> load) {
  return {.name = {},
          .kind = kind,
          .object = object,
          .save =
              [save = std::move(save)](Capture& capture) {
                Dict dict;
                for (const auto& [name, value] : save()) {
                  dict.pairs.emplace_back(name, value_of(value, capture));
                }
                return Value(std::move(dict));
              },
          .load =
              [load = std::move(load)](const Value& value, const Storages& storages) {
                load(state_dict_of(as<Dict>(value, "a state_dict"), storages));
              }};
}

Tracked track_generators(int cuda_device) {
  const Generators generators = generators_of(cuda_device);
  return {
      .name = {},
      .kind = Kind::Random,
      .is_per_rank = true,
      .save =
          [generators](Capture& capture) {
            Dict dict;
            for (const auto& [name, device] : generators) {
              dict.pairs.emplace_back(name, capture.add(generator_state(device)));
            }
            return Value(std::move(dict));
          },
      .load =
          [generators](const Value& value, const Storages& storages) {
            const Dict& dict = as<Dict>(value, "the generators' state");
            for (const auto& [name, device] : generators) {
              const auto* ref = dict.find_as<TensorRef>(name);
              if (ref != nullptr) set_generator_state(device, make_tensor(*ref, storages));
            }
          },
      .derive = [generators](uint64_t step, int rank) { seed_generators(step, rank, generators); }};
}

}  // namespace cpprun::snapshot

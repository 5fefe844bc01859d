#include "cpprun/nn/parallel/ddp_core.hpp"

#include <exception>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

#include "cpprun/nn/parallel/ddp_state.hpp"

namespace cpprun::nn::parallel {
namespace {

torch::nn::Module& existing(const std::shared_ptr<torch::nn::Module>& module) {
  if (module) return *module;
  throw std::invalid_argument("DistributedDataParallel: the module is empty");
}

}  // namespace

DdpCore::DdpCore(const std::shared_ptr<torch::nn::Module>& module, DdpOptions options)
    : state_(std::make_shared<DdpState>(existing(module), std::move(options))) {}
DdpCore::~DdpCore() = default;

void DdpCore::before_forward() { state_->before_forward(); }
bool DdpCore::wants_outputs() const { return state_->wants_outputs(); }

void DdpCore::after_forward(const std::vector<at::Tensor*>& outputs) {
  state_->after_forward(outputs);
}

void DdpCore::after_opaque_forward(const char* type) {
  if (state_->wants_outputs()) {
    throw std::invalid_argument(
        std::string("DistributedDataParallel: find_unused_parameters and static_graph must see the "
                    "tensors that forward returns, but can't look into ") +
        c10::demangle(type) + "; give it a visit_tensors function (collect_tensors.hpp)");
  }
  state_->after_forward({});
}

const std::optional<c10::Device>& DdpCore::input_device() const { return state_->input_device; }
NoSyncGuard DdpCore::no_sync_if(bool on) { return {state_, on}; }
JoinGuard DdpCore::join(const JoinOptions& options) { return {state_, options}; }

void DdpCore::zero_grad(bool set_to_none) {
  for (const at::Tensor& parameter : state_->model.all_parameters) {
    at::Tensor& gradient = parameter.mutable_grad();
    if (!gradient.defined()) continue;
    if (set_to_none) {
      gradient.reset();
      continue;
    }
    // detach_() throws for views into buckets.
    if (gradient.grad_fn()) gradient = gradient.detach();
    gradient.requires_grad_(false);
    gradient.zero_();
  }
}

void DdpCore::register_comm_hook(CommHook hook) {
  if (!hook.run)
    throw std::invalid_argument("register_comm_hook: the hook '" + hook.name + "' is empty");
  if (!state_->hook_name.empty()) {
    throw std::invalid_argument("register_comm_hook: '" + state_->hook_name +
                                "' is registered already; there can be one hook");
  }
  state_->hook_name = hook.name.empty() ? "own" : hook.name;
  state_->logger->set_comm_hook(state_->hook_name);
  auto adapter = std::make_unique<CommHookAdapter>(std::move(hook), state_->group);
  state_->hook = adapter.get();
  state_->reducer->register_comm_hook(std::move(adapter));
  if (!state_->loaded_hook.empty()) load_hook_state(std::exchange(state_->loaded_hook, {}));
  if (!state_->loaded_own_hook.empty()) {
    load_own_hook_state(std::exchange(state_->loaded_own_hook, {}));
  }
}

namespace {

// The hook's name is in its state, because a state is of no use to another kind of hook.
constexpr const char* kHookName = "hook";

bool is_of(const StateDict& state, const std::string& hook) {
  const auto name = state.find(kHookName);
  const auto* text = name == state.end() ? nullptr : std::get_if<std::string>(&name->second);
  return text != nullptr && *text == hook;
}

}  // namespace

StateDict DdpCore::hook_state() const {
  if (state_->hook == nullptr || !state_->hook->state().save) return {};
  StateDict state = state_->hook->state().save();
  state[kHookName] = state_->hook_name;
  return state;
}

StateDict DdpCore::own_hook_state() const {
  if (state_->hook == nullptr || !state_->hook->state().save_own) return {};
  StateDict state = state_->hook->state().save_own();
  state[kHookName] = state_->hook_name;
  return state;
}

void DdpCore::load_hook_state(const StateDict& state) {
  if (state_->hook == nullptr) {
    state_->loaded_hook = state;
  } else if (state_->hook->state().load && is_of(state, state_->hook_name)) {
    state_->hook->state().load(state);
  } else {
    TORCH_WARN("the snapshot has the state of another communication hook than '", state_->hook_name,
               "', which begins as it is");
  }
}

void DdpCore::load_own_hook_state(const StateDict& state) {
  if (state_->hook == nullptr) {
    state_->loaded_own_hook = state;
  } else if (state_->hook->state().load_own && is_of(state, state_->hook_name)) {
    state_->hook->state().load_own(state);
  }
}

std::vector<std::pair<std::string, std::string>> DdpCore::logging_data() const {
  const at::DDPLoggingData data = state_->logger->get_ddp_logging_data();
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [name, value] : data.strs_map) all.emplace_back(name, value);
  for (const auto& [name, value] : data.ints_map) all.emplace_back(name, std::to_string(value));
  return all;
}

const std::vector<at::Tensor>& DdpCore::parameters() const { return state_->model.all_parameters; }
const std::vector<std::string>& DdpCore::parameter_names() const { return state_->model.names; }

namespace {

using Buckets = std::vector<std::vector<size_t>>;

// "2 1;0" from buckets, and back; a word that is no number ends a bucket.
std::string text_of(const Buckets& buckets) {
  std::string text;
  for (const auto& bucket : buckets) {
    if (!text.empty()) text += ';';
    for (size_t i = 0; i < bucket.size(); ++i) {
      text += (i == 0 ? "" : " ") + std::to_string(bucket[i]);
    }
  }
  return text;
}

Buckets buckets_of(const std::string& text) {
  Buckets buckets;
  std::istringstream all(text);
  for (std::string part; std::getline(all, part, ';');) {
    std::istringstream numbers(part);
    auto& bucket = buckets.emplace_back();
    for (size_t number = 0; numbers >> number;) bucket.push_back(number);
  }
  return buckets;
}

// True if each of `count` parameters occurs once and no bucket is empty.
bool is_partition(const Buckets& buckets, size_t count) {
  std::vector<bool> seen(count);
  size_t found = 0;
  for (const auto& bucket : buckets) {
    if (bucket.empty()) return false;
    for (const size_t index : bucket) {
      if (index >= count || seen[index]) return false;
      seen[index] = true;
      ++found;
    }
  }
  return found == count;
}

}  // namespace

std::string DdpCore::buckets() {
  try {
    state_->reducer->rebuild_buckets();  // as the next forward would; throws its errors
  } catch (...) {
    std::rethrow_exception(
        state_->explained(std::current_exception(), "DistributedDataParallel::buckets"));
  }
  std::unordered_map<const c10::TensorImpl*, size_t> place;
  for (size_t i = 0; i < state_->model.reduced.size(); ++i) {
    place[state_->model.reduced[i].unsafeGetTensorImpl()] = i;
  }
  Buckets buckets;
  for (const auto& bucket : state_->reducer->get_grad_buckets()) {
    auto& indices = buckets.emplace_back();
    for (const at::Tensor& parameter : bucket.getParameters()) {
      indices.push_back(place.at(parameter.unsafeGetTensorImpl()));
    }
  }
  return text_of(buckets);
}

void DdpCore::set_buckets(const std::string& text) {
  Buckets buckets = buckets_of(text);
  if (state_->has_run || !is_partition(buckets, state_->model.reduced.size())) return;
  state_->reducer->initialize_buckets(std::move(buckets));
}

}  // namespace cpprun::nn::parallel

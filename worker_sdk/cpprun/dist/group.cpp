// ProcessGroup handles, the default group, and what backends support.
#include <algorithm>

#include "cpprun/dist/backend/backend_map.hpp"
#include "cpprun/dist/backend/nccl_plugin.hpp"
#include "cpprun/dist/group/group_registry.hpp"
#include "cpprun/dist/group/group_state.hpp"
#include "cpprun/worker/environment.hpp"

namespace cpprun::dist {
namespace {

const ProcessGroup::State& state_of(const ProcessGroup& group) {
  if (group.state()) return *group.state();
  throw DistStateError(
      "an empty ProcessGroup was asked about itself; it stands for the default "
      "group only as an argument");
}

DistStateError not_a_member(const ProcessGroup::State& state, const char* call) {
  return DistStateError(std::string(call) + ": this process does not belong to " + describe(state));
}

const std::set<std::string> kCalls = {"broadcast",
                                      "all_reduce",
                                      "all_reduce_coalesced",
                                      "reduce",
                                      "all_gather",
                                      "all_gather_into_tensor",
                                      "all_gather_into_tensor_coalesced",
                                      "gather",
                                      "scatter",
                                      "reduce_scatter",
                                      "reduce_scatter_tensor",
                                      "reduce_scatter_tensor_coalesced",
                                      "all_to_all",
                                      "all_to_all_single",
                                      "send",
                                      "recv",
                                      "isend",
                                      "irecv",
                                      "batch_isend_irecv",
                                      "barrier",
                                      "monitored_barrier"};

Capabilities gloo() {
  Capabilities can;
  can.calls = kCalls;
  can.reduce_ops = {"SUM", "PRODUCT", "MIN", "MAX"};
  can.integer_reduce_ops = {"BAND", "BOR", "BXOR"};
  can.emulated_reduce_ops = {"AVG"};
  return can;
}

Capabilities nccl() {
  Capabilities can;
  can.calls = kCalls;
  can.reduce_ops = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "PREMUL_SUM"};
  return can;
}

}  // namespace

std::string describe(const ProcessGroup::State& state) {
  const std::string place =
      state.rank < 0 ? "not a member of its " : "rank " + std::to_string(state.rank) + " of ";
  return "group " + state.name + " (" + state.backend + ", " + place +
         std::to_string(state.ranks.size()) + ")";
}

std::string listed(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

std::shared_ptr<ProcessGroup::State> resolve(const ProcessGroup& group, const char* call) {
  const auto state = group.state() ? group.state() : registry::default_group();
  if (!state) {
    throw DistStateError(std::string(call) +
                         ": there is no default group; call init_process_group() first");
  }
  if (state->destroyed) {
    throw DistStateError(std::string(call) + ": " + describe(*state) + " was destroyed");
  }
  return state;
}

c10::intrusive_ptr<c10d::ProcessGroup> native(const ProcessGroup& group) {
  const auto state = resolve(group, "native");
  const std::lock_guard lock(state->mutex);
  if (!state->pg) throw not_a_member(*state, "native");
  return state->pg;
}

int ProcessGroup::rank() const { return state_of(*this).rank; }
int ProcessGroup::size() const { return static_cast<int>(state_of(*this).ranks.size()); }
const std::string& ProcessGroup::name() const { return state_of(*this).name; }
std::string ProcessGroup::backend() const { return state_of(*this).backend; }
std::chrono::milliseconds ProcessGroup::timeout() const { return state_of(*this).timeout; }
const std::vector<int>& ProcessGroup::ranks() const { return state_of(*this).ranks; }

Store ProcessGroup::store() const {
  const auto state = resolve(*this, "store");
  const std::lock_guard lock(state->mutex);
  if (!state->store) throw not_a_member(*state, "store");
  return wrap(state->store);
}

bool is_initialized() { return registry::default_group() != nullptr; }

bool is_torchelastic_launched() {
  // As in Python; unlike MPI or Slurm, both launchers set TORCHELASTIC_RUN_ID.
  return !worker::environment_or_default().run_id.empty();
}

ProcessGroup default_group() { return ProcessGroup(resolve({}, "default_group")); }
int get_rank(const ProcessGroup& group) { return resolve(group, "get_rank")->rank; }

int get_world_size(const ProcessGroup& group) {
  return static_cast<int>(resolve(group, "get_world_size")->ranks.size());
}

std::string get_backend(const ProcessGroup& group) {
  return resolve(group, "get_backend")->backend;
}

int get_local_rank() { return worker::environment_or_default().local_rank; }
bool is_main_process() { return get_rank() == 0; }

bool is_nccl_available() { return has_gpu(); }

c10::Device local_device() {
  return resolve({}, "local_device")->device.value_or(c10::Device(c10::DeviceType::CPU));
}

int get_group_rank(const ProcessGroup& group, int global_rank) {
  const auto state = resolve(group, "get_group_rank");
  const auto found = std::find(state->ranks.begin(), state->ranks.end(), global_rank);
  if (found != state->ranks.end()) return static_cast<int>(found - state->ranks.begin());
  throw DistArgumentError("get_group_rank: global rank " + std::to_string(global_rank) +
                          " does not belong to " + describe(*state));
}

int get_global_rank(const ProcessGroup& group, int group_rank) {
  const auto state = resolve(group, "get_global_rank");
  if (group_rank >= 0 && group_rank < static_cast<int>(state->ranks.size())) {
    return state->ranks[static_cast<size_t>(group_rank)];
  }
  throw DistArgumentError("get_global_rank: there is no rank " + std::to_string(group_rank) +
                          " in " + describe(*state));
}

Capabilities capabilities(const std::string& backend) {
  const bool is_automatic = backend.empty() || backend == "auto";
  Capabilities can;
  for (const auto& [device, name] :
       parse_backend(is_automatic ? automatic_backend(has_gpu()) : backend)) {
    Capabilities one = name == "nccl" ? nccl() : gloo();
    can.calls.merge(one.calls);
    can.reduce_ops.merge(one.reduce_ops);
    can.integer_reduce_ops.merge(one.integer_reduce_ops);
    can.emulated_reduce_ops.merge(one.emulated_reduce_ops);
    can.has_cpu = can.has_cpu || device == c10::DeviceType::CPU;
    can.has_cuda = can.has_cuda || device == c10::DeviceType::CUDA;
  }
  return can;
}

}  // namespace cpprun::dist

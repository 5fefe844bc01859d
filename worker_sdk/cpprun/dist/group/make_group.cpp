#include "cpprun/dist/group/make_group.hpp"

#include <set>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "cpprun/dist/backend/backend_map.hpp"
#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/backend/gloo_backend.hpp"
#include "cpprun/dist/backend/nccl_plugin.hpp"
#include "cpprun/dist/group/group_sockets.hpp"
#include "cpprun/dist/init/init_plan.hpp"
#include "cpprun/dist/init/local_address.hpp"

namespace cpprun::dist {
namespace {

using BackendType = c10d::ProcessGroup::BackendType;
using StorePointer = c10::intrusive_ptr<c10d::Store>;

// A c10d group holds its backends as long as any object, such as a Reducer, holds the group.
class OwnGroup final : public c10d::ProcessGroup {
 public:
  using c10d::ProcessGroup::ProcessGroup;

  void drop() {
    deviceTypeToBackend_.clear();
    backendTypeToBackend_.clear();
  }
};

BackendType type_of(const std::string& backend) {
  return backend == "nccl" ? BackendType::NCCL : BackendType::GLOO;
}

GlooEndpoint gloo_endpoint(const GroupPlan& plan) {
  GlooEndpoint endpoint;
  endpoint.interface = plan.options.gloo_interface;
  if (endpoint.interface.empty())
    endpoint.interface = own_variable("GLOO_SOCKET_IFNAME").value_or("");
  // torch uses several devices for several names; the SDK uses the first one.
  endpoint.interface = endpoint.interface.substr(0, endpoint.interface.find(','));
  if (!endpoint.interface.empty()) return endpoint;
  endpoint.address = local_address_towards(plan.master_address);
  if (endpoint.address.empty()) endpoint.address = local_address_towards("");
  return endpoint;
}

c10::intrusive_ptr<c10d::Backend> make_backend(const GroupPlan& plan, const std::string& name,
                                               const StorePointer& store) {
  const int size = static_cast<int>(plan.registration.ranks.size());
  if (name == "gloo") {
    return make_gloo(store, plan.registration.rank, size, plan.timeout, gloo_endpoint(plan));
  }
  NcclPlan nccl{store,
                plan.registration.rank,
                size,
                plan.timeout,
                plan.options.is_high_priority_stream,
                plan.name,
                {},
                GroupSockets::are_followed()};
  nccl.global_ranks.assign(plan.registration.ranks.begin(), plan.registration.ranks.end());
  return nccl_plugin_with_gpu().make(nccl);
}

// All devices share one backend if it has the same name, as in Python.
void add_backends(const GroupPlan& plan, const StorePointer& store, c10d::ProcessGroup& group) {
  const BackendMap map = parse_backend(plan.backend);
  std::set<std::string> names;
  for (const auto& [device, name] : map) names.insert(name);
  group.setDefaultBackend(type_of(names.contains("nccl") ? "nccl" : "gloo"));
  c10::intrusive_ptr<c10d::Backend> backend;
  for (const auto& [device, name] : map) {
    if (!backend || names.size() > 1) {
      const std::string prefix = c10::DeviceTypeName(device, true) + "/";
      backend = make_backend(plan, name, c10::make_intrusive<c10d::PrefixStore>(prefix, store));
    }
    group.setBackend(device, type_of(name), backend);
  }
}

// Adds the missing ranks, which the store knows, to the text of a timeout.
std::exception_ptr with_missing(const GroupPlan& plan, const RankRegistration& registration,
                                const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const DistTimeoutError& error) {
    const std::vector<int> missing = missing_ranks(registration);
    if (missing.empty()) return failed;
    return std::make_exception_ptr(
        DistTimeoutError(registration.call + ": missing rank(s): " + listed(missing) + " after " +
                         std::to_string(plan.timeout.count()) + " ms (" + error.what() + ")"));
  } catch (...) {
    return failed;
  }
}

[[noreturn]] void fail(const GroupPlan& plan, const RankRegistration& registration,
                       const std::exception_ptr& others) {
  if (others) std::rethrow_exception(others);
  const auto failed =
      with_missing(plan, registration, translate(std::current_exception(), registration.call));
  // Check after missing_ranks(), because a rank that reports a failure sets keys of other ranks.
  if (const auto theirs = failure_of_other_ranks(registration)) std::rethrow_exception(theirs);
  report_failure(registration, failed);
  std::rethrow_exception(failed);
}

std::shared_ptr<ProcessGroup::State> state_of(const GroupPlan& plan, StorePointer store,
                                              c10::intrusive_ptr<c10d::ProcessGroup> group) {
  auto state = std::make_shared<ProcessGroup::State>();
  state->pg = std::move(group);
  state->store = std::move(store);
  state->ranks = plan.registration.ranks;
  state->rank = plan.registration.rank;
  state->name = plan.shown_name;
  state->backend = plan.backend;
  state->timeout = plan.timeout;
  return state;
}

}  // namespace

void check_timeout(const char* call, const InitOptions& options) {
  if (!options.timeout || options.timeout->count() > 0) return;
  throw DistArgumentError(std::string(call) + ": timeout is " +
                          std::to_string(options.timeout->count()) +
                          " ms, but must be more than 0");
}

std::shared_ptr<ProcessGroup::State> make_group(const GroupPlan& plan) {
  RankRegistration registration = plan.registration;
  registration.store =
      c10::make_intrusive<c10d::PrefixStore>(plan.name + "/", plan.registration.store);
  if (registration.rank < 0) return state_of(plan, nullptr, nullptr);
  const int size = static_cast<int>(registration.ranks.size());
  translated(registration.call, [&] { register_rank(registration); });
  const auto others = std::make_shared<std::exception_ptr>();
  try {
    c10::intrusive_ptr<c10d::ProcessGroup> group =
        c10::make_intrusive<OwnGroup>(registration.store, registration.rank, size);
    if (plan.device) group->setBoundDeviceId(plan.device);
    const StorePointer watched = c10::make_intrusive<WatchedStore>(
        registration.store, plan.timeout, watch_other_ranks(registration, others));
    {
      const GroupSockets::Appearing sockets;
      add_backends(plan, watched, *group);
    }
    group->setGroupName(plan.name);
    return state_of(plan, registration.store, std::move(group));
  } catch (...) {
    fail(plan, registration, *others);
  }
}

void drop_backends(c10d::ProcessGroup& group) {
  if (auto* own = dynamic_cast<OwnGroup*>(&group)) own->drop();
}

}  // namespace cpprun::dist

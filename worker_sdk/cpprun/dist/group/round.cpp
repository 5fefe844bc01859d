#include "cpprun/dist/group/round.hpp"

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mutex>

#include "cpprun/dist/errors.hpp"
#include "cpprun/dist/group/group_registry.hpp"
#include "cpprun/dist/group/group_sockets.hpp"
#include "cpprun/dist/group/make_group.hpp"
#include "cpprun/dist/init/store_rendezvous.hpp"

namespace cpprun::dist {
namespace {

// Null: the group has none, or is destroyed.
c10::intrusive_ptr<c10d::Backend> nccl_backend(const ProcessGroup::State& group) {
  const std::lock_guard lock(group.mutex);  // a group that is destroyed drops its backends after it
  if (!group.has_nccl() || !group.pg) return nullptr;
  return group.pg->getBackend(c10::DeviceType::CUDA);
}

void abort_nccl() {
  for (const registry::Group& group : registry::all()) {
    if (const auto backend = nccl_backend(*group)) backend->abort();
  }
}

}  // namespace

void begin_round(int64_t round) {
  begin_round_of_stores(round);
  GroupSockets::forget();
  GroupSockets::follow();
}

void wake_round() {
  GroupSockets::shut_down();
  abort_nccl();
}

void leave_round() { abandon_groups(); }

bool needs_round_check(const ProcessGroup& group) {
  return GroupSockets::are_followed() && resolve(group, "needs_round_check")->has_nccl();
}

void check_round(c10::Device device) {
  if (!device.is_cpu()) {
    c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
  }
  if (GroupSockets::are_shut_down()) {
    throw DistNetworkError("another worker has failed: the results of collectives are undefined");
  }
}

}  // namespace cpprun::dist

#include "cpprun/dist/group/own_device.hpp"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "cpprun/dist/backend/backend_map.hpp"

namespace cpprun::dist {

std::optional<c10::Device> own_device(const std::string& backend,
                                      const std::optional<c10::Device>& wanted, int local_rank) {
  if (wanted && wanted->has_index()) return wanted;
  for (const auto& [type, name] : parse_backend(backend)) {
    if (name == "nccl") return c10::Device(type, static_cast<c10::DeviceIndex>(local_rank));
  }
  return std::nullopt;
}

bool use_device(const c10::Device& device) {
  if (device.is_cpu() || !c10::impl::hasDeviceGuardImpl(device.type())) return false;
  const auto* guard = c10::impl::getDeviceGuardImpl(device.type());
  if (device.index() >= guard->deviceCount()) return false;
  guard->setDevice(device);
  return true;
}

}  // namespace cpprun::dist

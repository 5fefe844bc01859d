#include "cpprun/dist/backend/backend_map.hpp"

#include <algorithm>
#include <cctype>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "common/text.hpp"
#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {
namespace {

[[noreturn]] void refuse(const std::string& backend, const std::string& why) {
  throw DistArgumentError("backend '" + backend + "': " + why +
                          "; write gloo, nccl, auto or cpu:gloo,cuda:nccl");
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

c10::DeviceType device_of(const std::string& backend, const std::string& word) {
  if (word == "cpu") return c10::DeviceType::CPU;
  if (word == "cuda") return c10::DeviceType::CUDA;
  refuse(backend, "'" + word + "' is no device");
}

void add_pair(const std::string& backend, const std::string& pair, BackendMap& to) {
  const size_t colon = pair.find(':');
  if (colon == std::string::npos) refuse(backend, "'" + pair + "' is not device:backend");
  const c10::DeviceType device = device_of(backend, pair.substr(0, colon));
  const std::string name = pair.substr(colon + 1);
  if (name != "gloo" && name != "nccl") refuse(backend, "'" + name + "' is not known");
  if (name == "nccl" && device == c10::DeviceType::CPU) refuse(backend, "nccl serves cuda only");
  for (const auto& [taken, other] : to) {
    if (taken == device) refuse(backend, "a device stands in it twice");
  }
  to.emplace_back(device, name);
}

}  // namespace

BackendMap parse_backend(const std::string& backend) {
  const std::string name = lower(backend);
  if (name == "gloo") return {{c10::DeviceType::CPU, name}, {c10::DeviceType::CUDA, name}};
  if (name == "nccl") return {{c10::DeviceType::CUDA, name}};
  if (name.find(':') == std::string::npos) refuse(backend, "it is not known");
  BackendMap map;
  for (const std::string& pair : text::split(name, ',')) add_pair(backend, pair, map);
  return map;
}

std::string automatic_backend(bool has_gpu) { return has_gpu ? "cpu:gloo,cuda:nccl" : "gloo"; }

std::chrono::milliseconds default_timeout(const std::string& backend) {
  return lower(backend) == "nccl" ? kNcclTimeout : kGlooTimeout;
}

std::optional<c10::Device> own_device(const std::string& backend,
                                      const std::optional<c10::Device>& wanted, int local_rank) {
  if (wanted && wanted->has_index()) return wanted;
  for (const auto& [type, name] : parse_backend(backend)) {
    if (name == "nccl") return c10::Device(type, static_cast<c10::DeviceIndex>(local_rank));
  }
  return std::nullopt;
}

c10::Device visible_device(const c10::Device& device, int count) {
  return count == 1 && device.index() > 0 ? c10::Device(device.type(), 0) : device;
}

int device_count(c10::DeviceType type) {
  if (!c10::impl::hasDeviceGuardImpl(type)) return 0;
  return c10::impl::getDeviceGuardImpl(type)->deviceCount();
}

bool use_device(const c10::Device& device) {
  if (device.is_cpu() || !c10::impl::hasDeviceGuardImpl(device.type())) return false;
  const auto* guard = c10::impl::getDeviceGuardImpl(device.type());
  if (device.index() >= guard->deviceCount()) return false;
  guard->setDevice(device);
  return true;
}

}  // namespace cpprun::dist

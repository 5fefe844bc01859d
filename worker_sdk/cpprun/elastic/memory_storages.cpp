#include "cpprun/elastic/memory_storages.hpp"

#include <ATen/ATen.h>

#include <cstring>

namespace cpprun::detail {

void MemoryStorages::add_copies(const std::vector<snapshot::Storage>& storages) {
  for (const snapshot::Storage& each : storages) {
    add(each.name, each.bytes.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
  }
}

Status MemoryStorages::read(const std::string& name, uint64_t from,
                            std::span<std::byte> into) const {
  const auto found = by_name_.find(name);
  const uint64_t size = found == by_name_.end() ? 0 : found->second.nbytes();
  if (from > size || into.size() > size - from) {
    return Error{ErrorKind::Protocol, "the state has no " + std::to_string(into.size()) +
                                          " bytes at " + std::to_string(from) + " of storage '" +
                                          name + "'"};
  }
  if (into.empty()) return {};
  std::memcpy(into.data(), static_cast<const std::byte*>(found->second.const_data_ptr()) + from,
              into.size());
  return {};
}

}  // namespace cpprun::detail

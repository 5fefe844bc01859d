// Default ports.
#pragma once

#include <cstdint>

namespace cpprun {

inline constexpr uint16_t kRendezvousPort = 29400;  // torchrun's c10d backend
inline constexpr uint16_t kEtcdPort = 2379;         // etcd's client port

}  // namespace cpprun

// Ports that are meant where none is named.
#pragma once

#include <cstdint>

namespace cpprun {

inline constexpr uint16_t kRendezvousPort = 29400;  // of torchrun's c10d
inline constexpr uint16_t kEtcdPort = 2379;         // of etcd, for its clients

}  // namespace cpprun

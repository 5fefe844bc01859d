// Limits: what `cpprunctl doctor` looks at.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kProbeConnects = 2s;  // per address of an endpoint
inline constexpr size_t kProbeAddresses = 8;

}  // namespace cpprun::limits

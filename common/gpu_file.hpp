// The names of NVIDIA's device files in /dev. Pure.
#pragma once

#include <string_view>

namespace cpprun {

// True for "nvidia0", "nvidia1" and so on (one per GPU), false for "nvidiactl" and others.
inline bool is_gpu_file(std::string_view name) {
  constexpr std::string_view kStart = "nvidia";
  return name.size() > kStart.size() && name.starts_with(kStart) &&
         name.find_first_not_of("0123456789", kStart.size()) == std::string_view::npos;
}

}  // namespace cpprun

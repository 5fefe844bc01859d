// The names of NVIDIA's device files in /dev. Pure.
#pragma once

#include <string_view>

namespace cpprun {

// "nvidia0", "nvidia1", …: one per GPU; not "nvidiactl" and its like.
inline bool is_gpu_file(std::string_view name) {
  constexpr std::string_view kStart = "nvidia";
  return name.size() > kStart.size() && name.starts_with(kStart) &&
         name.find_first_not_of("0123456789", kStart.size()) == std::string_view::npos;
}

}  // namespace cpprun

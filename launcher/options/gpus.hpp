// How many NVIDIA GPUs a worker would see, without loading CUDA (which takes a second and holds
// device memory).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/options/environment.hpp"

namespace cpprun {

// What /proc and /dev show of the machine.
struct GpuTraces {
  int proc_gpus =
      0;  // folders in /proc/driver/nvidia/gpus; inside a container those of the whole machine
  int device_files =
      0;  // /dev/nvidia0, /dev/nvidia1, ...; inside a container those that it may use
  bool has_modprobe = false;  // nvidia-modprobe makes missing device files at first use
};

// Pure: GPUs of the machine (or container) by those traces.
int count_gpus(const GpuTraces& traces);

// Pure: how many of `count` are left by CUDA_VISIBLE_DEVICES, read as CUDA and torch read it: the
// list ends at the first entry that does not exist; a repeated one makes it void.
GpuProbe visible_gpus(int count, const std::optional<std::string>& visible);

// The whole look at this machine. `pretended` is CPPRUN_TEST_GPUS: so many instead of those that
// are there.
GpuProbe probe_gpus(const std::optional<std::string>& pretended,
                    const std::optional<std::string>& visible);

}  // namespace cpprun

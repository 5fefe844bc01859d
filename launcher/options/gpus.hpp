// How many NVIDIA GPUs a worker would see, without loading CUDA (which takes a second and holds
// device memory).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/options/environment.hpp"

namespace cpprun {

// What /proc and /dev show of the machine; in a container /proc shows the whole machine.
struct GpuTraces {
  int proc_gpus = 0;          // folders in /proc/driver/nvidia/gpus
  int device_files = 0;       // /dev/nvidia0, /dev/nvidia1, ...; in a container its own only
  bool has_modprobe = false;  // nvidia-modprobe creates missing device files at first use
};

// Pure: the number of GPUs of the machine (or container) according to `traces`.
int count_gpus(const GpuTraces& traces);

// Pure: how many of `count` GPUs CUDA_VISIBLE_DEVICES leaves, read as CUDA and torch read it: the
// list ends at the first entry that does not exist; a repeated entry makes it void.
GpuProbe visible_gpus(int count, const std::optional<std::string>& visible);

// Probes this machine. `pretended` (CPPRUN_TEST_GPUS) is a number of GPUs to assume instead of the
// real one.
GpuProbe probe_gpus(const std::optional<std::string>& pretended,
                    const std::optional<std::string>& visible);

}  // namespace cpprun

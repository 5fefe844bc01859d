#include "launcher/options/gpus.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "common/machine/files.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

GpuTraces look() {
  GpuTraces traces;
  traces.proc_gpus = static_cast<int>(list_folder("/proc/driver/nvidia/gpus").size());
  traces.device_files = static_cast<int>(list_gpu_files("/dev").size());
  traces.has_modprobe = ::access("/usr/bin/nvidia-modprobe", X_OK) == 0;
  return traces;
}

// Counts entries such as GPU-8932f937...; all must have the same prefix and differ.
int count_by_identity(const std::vector<std::string>& entries, std::string_view form) {
  std::set<std::string_view> seen;
  for (const std::string& entry : entries) {
    std::string_view name = text::strip(entry);
    if (!name.starts_with(form)) break;
    if (!seen.insert(name).second) return 0;
  }
  return static_cast<int>(seen.size());
}

int count_by_number(const std::vector<std::string>& entries, int count) {
  std::set<int64_t> seen;
  for (const std::string& entry : entries) {
    std::optional<int64_t> number = text::parse_int(entry);
    if (!number || *number < 0 || *number >= count) break;
    if (!seen.insert(*number).second) return 0;
  }
  return static_cast<int>(seen.size());
}

}  // namespace

int count_gpus(const GpuTraces& traces) {
  if (traces.device_files > 0 && traces.proc_gpus > 0)
    return std::min(traces.device_files, traces.proc_gpus);
  if (traces.device_files > 0) return traces.device_files;
  // A container without GPUs still shows the machine's /proc entries; they are usable only through
  // the driver's helper.
  return traces.has_modprobe ? traces.proc_gpus : 0;
}

GpuProbe visible_gpus(int count, const std::optional<std::string>& visible) {
  if (count == 0 || !visible) return {count, ""};
  std::vector<std::string> entries = text::split(*visible, ',');
  std::string_view first = text::strip(entries.front());
  int left = 0;
  if (first.starts_with("GPU-")) {
    left = std::min(count_by_identity(entries, "GPU-"), count);
  } else if (first.starts_with("MIG-")) {
    left = std::min(count_by_identity(entries, "MIG-"), 1);  // CUDA uses one MIG slice at most
  } else {
    left = count_by_number(entries, count);
  }
  if (left > 0) return {left, ""};
  if (first.empty()) return {0, "CUDA_VISIBLE_DEVICES is empty"};
  return {0, "CUDA_VISIBLE_DEVICES=" + *visible + " names none of this machine's " +
                 text::count(static_cast<size_t>(count), "GPU")};
}

GpuProbe probe_gpus(const std::optional<std::string>& pretended,
                    const std::optional<std::string>& visible) {
  if (pretended) {
    int count =
        static_cast<int>(std::clamp<int64_t>(text::parse_int(*pretended).value_or(0), 0, 4096));
    if (count == 0) return {0, "CPPRUN_TEST_GPUS is 0"};
    return visible_gpus(count, visible);
  }
  GpuTraces traces = look();
  int count = count_gpus(traces);
  if (count > 0) return visible_gpus(count, visible);
  if (traces.proc_gpus > 0) return {0, "an NVIDIA driver, but no device file /dev/nvidia0"};
  return {0, "no NVIDIA driver on this machine"};
}

}  // namespace cpprun

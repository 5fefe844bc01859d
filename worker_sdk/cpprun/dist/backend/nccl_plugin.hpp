// What dist and libcpprun_nccl.so agree on. Private to the SDK.
//
// The NCCL backend lives in a library of its own, because it drags in all of LibTorch's CUDA part
// (230 MiB in memory): it is loaded when nccl is asked for, or "auto" meets a GPU.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace cpprun::dist {

inline constexpr int kNcclPluginVersion = 1;
inline constexpr const char* kNcclPluginSymbol = "cpprun_nccl_plugin";

struct NcclPlan {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{};
  bool is_high_priority_stream = false;
  std::string group_name;
  std::vector<uint64_t> global_ranks;
};

// What the symbol returns: a table that lives as long as the process.
struct NcclPlugin {
  int version = kNcclPluginVersion;
  const char* torch_version = "";  // that it was compiled with
  int (*gpu_count)() = nullptr;    // 0 without a driver
  // "" or why the NCCL that was loaded does not fit the one it was compiled with.
  std::string (*complaint)() = nullptr;
  // Throws what LibTorch throws.
  c10::intrusive_ptr<c10d::Backend> (*make)(const NcclPlan& plan) = nullptr;
};
using NcclPluginEntry = const NcclPlugin* (*)();

// Loads the library at its first call. Throws DistUnsupportedError with the reason and the cure.
const NcclPlugin& nccl_plugin();
// The same for a GPU that is really there.
const NcclPlugin& nccl_plugin_with_gpu();
// Whether this process sees a GPU; loads the plugin only if the machine looks like it.
bool has_gpu();

}  // namespace cpprun::dist

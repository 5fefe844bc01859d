// The interface between dist and libcpprun_nccl.so. Private to the SDK.
//
// The NCCL backend is a library of its own, because it loads all of LibTorch's CUDA part (230 MiB
// of memory). dist loads it for backend nccl, and for "auto" if the machine has a GPU.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace cpprun::dist {

inline constexpr int kNcclPluginVersion = 2;
inline constexpr const char* kNcclPluginSymbol = "cpprun_nccl_plugin";

struct NcclPlan {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{};
  bool is_high_priority_stream = false;
  std::string group_name;
  std::vector<uint64_t> global_ranks;
  // After an error of NCCL, such as a lost peer, the communicator is aborted and the process lives.
  bool keeps_process = false;
};

// The table that the symbol returns; it lives as long as the process.
struct NcclPlugin {
  int version = kNcclPluginVersion;
  const char* torch_version = "";  // the version it was compiled with
  int (*gpu_count)() = nullptr;    // 0 without a driver
  // Empty, or why the loaded NCCL does not match the one it was compiled with.
  std::string (*complaint)() = nullptr;
  // Throws the exceptions of LibTorch.
  c10::intrusive_ptr<c10d::Backend> (*make)(const NcclPlan& plan) = nullptr;
};
using NcclPluginEntry = const NcclPlugin* (*)();

// Loads the library at the first call. Throws DistUnsupportedError with the reason and the remedy.
const NcclPlugin& nccl_plugin();
// The same; throws DistUnsupportedError also if this process sees no GPU.
const NcclPlugin& nccl_plugin_with_gpu();
// True if this process sees a GPU. Loads the plugin only if the machine has a GPU device file.
bool has_gpu();

}  // namespace cpprun::dist

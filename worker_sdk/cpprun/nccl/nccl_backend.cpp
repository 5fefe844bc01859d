// libcpprun_nccl.so: creates c10d's NCCL backends for dist. cpprun/dist/backend/nccl_plugin.hpp
// describes the only exported symbol, cpprun_nccl_plugin().
#include <nccl.h>

#include <cstdlib>

#include <c10/cuda/CUDAFunctions.h>
#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "cpprun/dist/backend/nccl_plugin.hpp"

namespace cpprun::dist {
namespace {

constexpr const char* kAbortsOnly = "2";  // CleanUpOnly

int gpu_count() { return c10::cuda::device_count(); }

std::string dotted(int version) {
  return std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// Structures such as ncclConfig_t grow between versions. A newer library of the same major version
// reads an older structure by its size; an older library misreads a newer one.
std::string complaint() {
  int loaded = 0;
  if (ncclGetVersion(&loaded) != ncclSuccess) return "NCCL does not report its version";
  if (loaded >= NCCL_VERSION_CODE && loaded / 10'000 == NCCL_MAJOR) return "";
  return "the NCCL that was loaded is " + dotted(loaded) +
         ", but libcpprun_nccl.so was built for " + dotted(NCCL_VERSION_CODE) +
         "; look for another libnccl.so.2 in LD_LIBRARY_PATH";
}

c10::intrusive_ptr<c10d::Backend> make(const NcclPlan& plan) {
  // ProcessGroupNCCL has no option for it, and reads the variable when it is made.
  if (plan.keeps_process) ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", kAbortsOnly, 1);
  auto options = c10d::ProcessGroupNCCL::Options::create(plan.is_high_priority_stream);
  options->timeout = plan.timeout;
  options->group_name = plan.group_name;
  options->global_ranks_in_group = plan.global_ranks;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(plan.store, plan.rank, plan.size,
                                                     std::move(options));
}

constexpr NcclPlugin kPlugin{kNcclPluginVersion, TORCH_VERSION, gpu_count, complaint, make};

}  // namespace
}  // namespace cpprun::dist

extern "C" const cpprun::dist::NcclPlugin* cpprun_nccl_plugin() { return &cpprun::dist::kPlugin; }

// The NCCL plugin by itself.
#include "cpprun/dist/backend/nccl_plugin.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {

SDK_CASE(load_nccl) {
  return printing_errors([] {
    const auto& plugin = dist::nccl_plugin();
    print_line("gpus " + std::to_string(plugin.gpu_count()) + " torch " + plugin.torch_version +
               plugin.complaint());
  });
}

}  // namespace cpprun::test

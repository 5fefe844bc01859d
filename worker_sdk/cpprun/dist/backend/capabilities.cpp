#include "cpprun/dist/backend/backend_map.hpp"
#include "cpprun/dist/backend/nccl_plugin.hpp"
#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {
namespace {

const std::set<std::string> kCalls = {"broadcast",
                                      "all_reduce",
                                      "reduce",
                                      "all_gather",
                                      "all_gather_into_tensor",
                                      "gather",
                                      "scatter",
                                      "reduce_scatter",
                                      "reduce_scatter_tensor",
                                      "all_to_all",
                                      "all_to_all_single",
                                      "send",
                                      "recv",
                                      "isend",
                                      "irecv",
                                      "batch_isend_irecv",
                                      "barrier",
                                      "monitored_barrier"};

Capabilities gloo() {
  Capabilities can;
  can.calls = kCalls;
  can.reduce_ops = {"SUM", "PRODUCT", "MIN", "MAX"};
  can.integer_reduce_ops = {"BAND", "BOR", "BXOR"};
  can.emulated_reduce_ops = {"AVG"};
  return can;
}

Capabilities nccl() {
  Capabilities can;
  can.calls = kCalls;
  can.reduce_ops = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "PREMUL_SUM"};
  return can;
}

}  // namespace

Capabilities capabilities(const std::string& backend) {
  const bool is_automatic = backend.empty() || backend == "auto";
  Capabilities can;
  for (const auto& [device, name] :
       parse_backend(is_automatic ? automatic_backend(has_gpu()) : backend)) {
    Capabilities one = name == "nccl" ? nccl() : gloo();
    can.calls.merge(one.calls);
    can.reduce_ops.merge(one.reduce_ops);
    can.integer_reduce_ops.merge(one.integer_reduce_ops);
    can.emulated_reduce_ops.merge(one.emulated_reduce_ops);
    can.has_cpu = can.has_cpu || device == c10::DeviceType::CPU;
    can.has_cuda = can.has_cuda || device == c10::DeviceType::CUDA;
  }
  return can;
}

}  // namespace cpprun::dist

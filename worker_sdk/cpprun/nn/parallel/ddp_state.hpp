// The inside of a DistributedDataParallel, shared by its core, its guards and graphs that outlive
// it. Private to nn.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "cpprun/dist/native.hpp"
#include "cpprun/nn/parallel/comm_hook_adapter.hpp"
#include "cpprun/nn/parallel/forward_watch.hpp"
#include "cpprun/nn/parallel/module_state.hpp"

namespace cpprun::nn::parallel {

struct DdpState : std::enable_shared_from_this<DdpState> {
  DdpState(torch::nn::Module& module, DdpOptions options);
  DdpState(const DdpState&) = delete;
  DdpState& operator=(const DdpState&) = delete;
  ~DdpState();  // quiet, whatever the backend says

  void before_forward();
  void after_forward(const std::vector<at::Tensor*>& outputs);
  bool wants_outputs() const {
    return is_static ? !static_first_backward_seen : options.find_unused_parameters;
  }
  bool will_sync_buffers() const {
    return requires_forward_sync && options.broadcast_buffers && !model.buffer_list.empty();
  }
  void broadcast_states(const std::vector<at::Tensor>& tensors, int source);
  // In the words of `dist`, with parameters' names for the Reducer's numbers.
  std::exception_ptr explained(const std::exception_ptr& error, const char* call) const;
  // One number, reduced over the ranks on the module's device.
  at::Tensor number(double value) const;
  c10::intrusive_ptr<c10d::Work> all_reduce(at::Tensor& tensor,
                                            c10d::ReduceOp op = c10d::ReduceOp::SUM);

  // ddp_state.cpp
  void notify_join();
  void announce_backward_sync();
  int last_active_rank(bool is_candidate);
  void begin_join(const JoinOptions& join);
  JoinOptions end_join();  // returns what it was; later forwards are as without it
  void finish_join();

  DdpOptions options;
  ModuleState model;
  dist::ProcessGroup group;
  c10::intrusive_ptr<c10d::ProcessGroup> pg;
  std::optional<c10::Device> input_device;
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
  std::optional<ForwardWatch> watch;  // of rank 0: one warning for all
  CommHookAdapter* hook = nullptr;    // owned by the Reducer; null: none, or one of LibTorch's
  std::string hook_name;              // empty: none

  bool has_run = false;  // a forward that is followed by a backward
  bool is_static = false;
  bool static_first_backward_seen = false;
  bool requires_backward_sync = true;
  bool requires_forward_sync = true;
  JoinOptions join{.enable = false};
  std::exception_ptr broken;  // what a destructor could not throw

 private:
  void make_reducer();
  void make_logger();
  void start_equal();
  void sync_buffers();
  void join_shadow_step();
  void join_shadow_backward();
};

}  // namespace cpprun::nn::parallel

// DdpState: the state of a DistributedDataParallel, shared by DdpCore, the guards, and graphs that
// outlive it. Private to nn.
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
#include "cpprun/nn/parallel/round_check.hpp"

namespace cpprun::nn::parallel {

struct DdpState : std::enable_shared_from_this<DdpState> {
  DdpState(torch::nn::Module& module, DdpOptions options);
  DdpState(const DdpState&) = delete;
  DdpState& operator=(const DdpState&) = delete;
  ~DdpState();  // does not throw

  void before_forward();
  void after_forward(const std::vector<at::Tensor*>& outputs);
  bool wants_outputs() const {
    return is_static ? !static_first_backward_seen : options.find_unused_parameters;
  }
  bool will_sync_buffers() const {
    return requires_forward_sync && options.broadcast_buffers && !model.buffer_list.empty();
  }
  // Translates an error to those of `dist`, with parameters' names instead of the Reducer's
  // indices.
  std::exception_ptr explained(const std::exception_ptr& error, const char* call) const;
  // A tensor of one number on the module's device, to be reduced over the ranks.
  at::Tensor number(double value) const;
  c10::intrusive_ptr<c10d::Work> all_reduce(at::Tensor& tensor,
                                            c10d::ReduceOp op = c10d::ReduceOp::SUM);

  void notify_join();
  void announce_backward_sync();
  int last_active_rank(bool is_candidate);
  void begin_join(const JoinOptions& join);
  JoinOptions end_join();  // returns the previous options
  void finish_join();

  DdpOptions options;
  ModuleState model;
  dist::ProcessGroup group;
  c10::intrusive_ptr<c10d::ProcessGroup> pg;
  std::optional<c10::Device> input_device;
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
  std::optional<RoundCheck> round_check;
  std::optional<ForwardWatch> watch;  // on rank 0 only, so that the job prints one warning
  CommHookAdapter* hook = nullptr;    // owned by the Reducer; null: no hook
  std::string hook_name;              // empty: no hook
  // Loaded before a hook was registered; empty: none.
  StateDict loaded_hook, loaded_own_hook;

  bool has_run = false;  // a forward with gradients has run
  bool is_static = false;
  bool static_first_backward_seen = false;
  bool requires_backward_sync = true;
  bool requires_forward_sync = true;
  JoinOptions join{.enable = false};
  std::exception_ptr broken;  // an error that a destructor could not throw

 private:
  void make_reducer();
  void make_logger();
  void start_equal();
  void broadcast_states(const std::vector<at::Tensor>& tensors, int source);
  void broadcast_model(int source);
  void join_shadow_step();
  void join_shadow_backward();
};

}  // namespace cpprun::nn::parallel

// Uneven inputs: a rank without data answers the collectives of those that still have some. The
// collectives and their order are Python's (torch.distributed.algorithms.Join).
#include <utility>

#include "cpprun/dist/translate.hpp"
#include "cpprun/nn/parallel/ddp_state.hpp"

namespace cpprun::nn::parallel {

void DdpState::begin_join(const JoinOptions& given) {
  join = given;
  if (join.enable) logger->set_uneven_input_join();
}

// The Reducer keeps the last count, and would divide by it in every later backward.
JoinOptions DdpState::end_join() {
  reducer->set_forward_pass_work_handle(nullptr, /*useStaticWorldSize=*/true);
  return std::exchange(join, JoinOptions{.enable = false});
}

// An active rank counts itself in, before each forward.
void DdpState::notify_join() {
  at::Tensor one = number(1);
  auto counted = all_reduce(one);
  if (join.throw_on_early_termination) {
    at::Tensor exhausted = number(0);
    all_reduce(exhausted)->wait();
    if (exhausted.item<float>() != 0) {
      end_join();
      throw JoinTerminatedError("DistributedDataParallel::join: another rank has no more data");
    }
  }
  reducer->set_forward_pass_work_handle(counted, join.divide_by_initial_world_size);
}

// Tells joined ranks whether this step averages gradients; nobody here waits for the answer.
void DdpState::announce_backward_sync() {
  at::Tensor flag = number(requires_backward_sync ? 1 : 0);
  all_reduce(flag);
}

int DdpState::last_active_rank(bool is_candidate) {
  at::Tensor rank = at::full({1}, is_candidate ? group.rank() : -1,
                             at::TensorOptions(at::kLong).device(model.reduced.front().device()));
  all_reduce(rank, c10d::ReduceOp::MAX)->wait();
  return static_cast<int>(rank.item<int64_t>());
}

void DdpState::finish_join() {
  const JoinOptions how = end_join();
  if (!how.enable) return;
  dist::translated("DistributedDataParallel::join", group, [&] {
    const at::NoGradGuard no_grad;
    bool is_last = true;
    for (;;) {
      at::Tensor active = number(0);
      all_reduce(active)->wait();
      if (active.item<float>() == 0) break;
      if (how.throw_on_early_termination) {
        at::Tensor one = number(1);
        all_reduce(one)->wait();
        throw JoinTerminatedError("DistributedDataParallel::join: rank " +
                                  std::to_string(group.rank()) + " has no more data");
      }
      join_shadow_step();
      is_last = false;
    }
    auto tensors = model.parameters;
    if (options.broadcast_buffers) {
      tensors.insert(tensors.end(), model.buffers.begin(), model.buffers.end());
    }
    std::vector<at::Tensor> states;
    for (const auto& [name, tensor] : tensors) states.push_back(tensor.detach());
    broadcast_states(states, last_active_rank(is_last));
  });
}

void DdpState::join_shadow_step() {
  reducer->rebuild_buckets();
  if (will_sync_buffers()) broadcast_states(model.buffer_list, last_active_rank(false));
  at::Tensor flag = number(0);
  all_reduce(flag)->wait();
  requires_forward_sync = flag.item<float>() != 0;
  if (requires_forward_sync) join_shadow_backward();
}

void DdpState::join_shadow_backward() {
  auto buckets = reducer->get_grad_buckets(/*return_zero_tensors=*/true);
  std::vector<c10::intrusive_ptr<c10::ivalue::Future>> sums;
  for (auto& bucket : buckets) sums.push_back(reducer->run_comm_hook(bucket));
  for (const auto& sum : sums) {
    sum->wait();
    if (hook != nullptr) hook->parseHookResult(sum->value());
  }
  if (options.find_unused_parameters) {
    at::Tensor used = reducer->get_local_used_map_on_device();
    all_reduce(used)->wait();
  }
  reducer->push_rebuilt_params_for_all_indices();
}

}  // namespace cpprun::nn::parallel

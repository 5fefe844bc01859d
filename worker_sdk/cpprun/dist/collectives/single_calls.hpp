// Calls of c10d::ProcessGroup on one tensor, and on several of them at once, under the names of
// this version of LibTorch: the old names print warnings from 2.15 on. Private to dist.
#pragma once

#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace cpprun::dist {

using NativeWork = c10::intrusive_ptr<c10d::Work>;

template <class Group>
concept HasSingleCalls = requires(Group& group, at::Tensor& tensor) {
  group.all_gather_single(tensor, tensor);
};

// Templates, so that the compiler ignores the branch that does not exist.
template <class Group>
NativeWork single_all_gather(Group& group, at::Tensor& to, at::Tensor& from,
                             const c10d::AllgatherOptions& options) {
  if constexpr (HasSingleCalls<Group>) {
    return group.all_gather_single(to, from, options);
  } else {
    return group._allgather_base(to, from, options);
  }
}

template <class Group>
NativeWork single_reduce_scatter(Group& group, at::Tensor& to, at::Tensor& from,
                                 const c10d::ReduceScatterOptions& options) {
  if constexpr (HasSingleCalls<Group>) {
    return group.reduce_scatter_single(to, from, options);
  } else {
    return group._reduce_scatter_base(to, from, options);
  }
}

template <class Group>
concept HasSinglesCoalesced = requires(Group& group, std::vector<at::Tensor>& tensors) {
  group.all_gather_single_coalesced(tensors, tensors);
};

template <class Group>
NativeWork single_all_gathers(Group& group, std::vector<at::Tensor>& to,
                              std::vector<at::Tensor>& from,
                              const c10d::AllgatherOptions& options) {
  if constexpr (HasSinglesCoalesced<Group>) {
    return group.all_gather_single_coalesced(to, from, options);
  } else {
    return group.allgather_into_tensor_coalesced(to, from, options);
  }
}

template <class Group>
NativeWork single_reduce_scatters(Group& group, std::vector<at::Tensor>& to,
                                  std::vector<at::Tensor>& from,
                                  const c10d::ReduceScatterOptions& options) {
  if constexpr (HasSinglesCoalesced<Group>) {
    return group.reduce_scatter_single_coalesced(to, from, options);
  } else {
    return group.reduce_scatter_tensor_coalesced(to, from, options);
  }
}

template <class Group>
NativeWork single_all_to_all(Group& group, at::Tensor& to, at::Tensor& from,
                             std::vector<int64_t>& to_splits, std::vector<int64_t>& from_splits,
                             const c10d::AllToAllOptions& options) {
  if constexpr (HasSingleCalls<Group>) {
    return group.all_to_all_single(to, from, to_splits, from_splits, options);
  } else {
    return group.alltoall_base(to, from, to_splits, from_splits, options);
  }
}

}  // namespace cpprun::dist

// Calls c10d::Reducer's constructor, which gets more arguments from version to version of LibTorch.
// Picks the longest form that compiles. Private to nn.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace cpprun::nn::parallel {

struct ReducerTail {
  bool skip_all_reduce_unused_params = false;
  std::vector<int64_t> bucket_bytes_cap_list;  // since 2.11
};

// `prefix`: parameters, buckets, group, expect_sparse, cap, find_unused, views, names, first cap.
template <class... Prefix>
std::shared_ptr<c10d::Reducer> make_reducer(const ReducerTail& tail, Prefix&&... prefix) {
  using c10d::Reducer;
  using Caps = std::vector<int64_t>;
  constexpr bool kIsPython = false;
  const bool skip = tail.skip_all_reduce_unused_params;
  const Caps& caps = tail.bucket_bytes_cap_list;
  if constexpr (std::is_constructible_v<Reducer, Prefix..., bool, bool, Caps, bool, bool>) {
    return std::make_shared<Reducer>(std::forward<Prefix>(prefix)..., skip, kIsPython, caps,
                                     /*batched_grad_copy=*/false, /*lazy_bucket_allocation=*/false);
  } else if constexpr (std::is_constructible_v<Reducer, Prefix..., bool, bool, Caps, bool>) {
    return std::make_shared<Reducer>(std::forward<Prefix>(prefix)..., skip, kIsPython, caps,
                                     /*batched_grad_copy=*/false);
  } else if constexpr (std::is_constructible_v<Reducer, Prefix..., bool, bool, Caps>) {
    return std::make_shared<Reducer>(std::forward<Prefix>(prefix)..., skip, kIsPython, caps);
  } else {
    return std::make_shared<Reducer>(std::forward<Prefix>(prefix)..., skip, kIsPython);
  }
}

}  // namespace cpprun::nn::parallel

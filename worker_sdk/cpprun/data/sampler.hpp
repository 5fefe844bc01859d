// What a sampler is to the SDK's loaders and Trainer: any type with these four calls.
//
// `next(batch_size)` gives the next at most so many indices into the data set, none at the end of a
// pass, after which it may begin another; `size()` how many a pass has on this rank;
// `set_epoch(epoch)` begins another training epoch; `state()` is what a snapshot keeps.
// data::make_data_loader takes any of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cpprun::data {

template <class S>
concept Sampler = requires(S sampler, size_t batch_size, int64_t epoch) {
  { sampler.next(batch_size) } -> std::same_as<std::optional<std::vector<size_t>>>;
  { sampler.size() } -> std::convertible_to<size_t>;
  sampler.set_epoch(epoch);
  sampler.state();
};

}  // namespace cpprun::data

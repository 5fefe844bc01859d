/// @file
/// The concept Sampler: what make_data_loader and Trainer need of a sampler. Python counterpart:
/// torch.utils.data.Sampler. MarksConsumed: one that has mark_consumed().
///
/// `next(batch_size)`: the next at most `batch_size` indices into the data set; none at the end of
/// a pass, after which the next call may start another. `size()`: samples of this rank per pass.
/// `set_epoch(epoch)`: starts another epoch. `state()`: the position within the pass.
///
/// Optional. `load_state(state)`: continues at a position that state() returned; Snapshot and
/// Trainer then keep it. set_epoch() with the current epoch, and the first reset() after
/// load_state(), must leave that position. `mark_consumed(samples)`: state() counts these samples
/// instead of those that next() has given, because a loader with worker threads is ahead of the
/// loop. `reset()`: starts a pass. Without load_state, a Trainer saves and stops between epochs
/// only.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cpprun::data {

/// What make_data_loader(), DataLoader and Trainer need of a sampler: next(), size(), set_epoch()
/// and state(). The text of this file describes each of them.
template <class S>
concept Sampler = requires(S sampler, size_t batch_size, int64_t epoch) {
  { sampler.next(batch_size) } -> std::same_as<std::optional<std::vector<size_t>>>;
  { sampler.size() } -> std::convertible_to<size_t>;
  sampler.set_epoch(epoch);
  sampler.state();
};

/// A sampler that can count what the loop has got, not what next() has given.
template <class S>
concept MarksConsumed = requires(S& sampler) {
  sampler.mark_consumed(size_t{});
};

}  // namespace cpprun::data

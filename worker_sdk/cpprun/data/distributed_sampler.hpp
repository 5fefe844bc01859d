/// @file
/// DistributedSampler: gives each rank its part of a data set, in the same order as Python, bit for
/// bit. Python counterpart: torch.utils.data.distributed.DistributedSampler, which cannot resume.
///
///     data::DistributedSampler sampler(dataset.size().value(), {.shuffle = true, .seed = 1});
///     auto loader = data::make_data_loader(std::move(dataset), sampler, 64);
///     for (...) { sampler.set_epoch(epoch); for (auto& batch : *loader) ... }
///
/// Rank r gets positions r, r + num_replicas, ... of the epoch's order. If the size is not a
/// multiple of num_replicas, the first samples of the order pad it (drop_last: its last samples are
/// dropped). Copies share their state, so that set_epoch also affects the copy inside a loader.
/// Threads: any, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/data/samplers/base.h>

namespace cpprun::data {

/// Options of DistributedSampler, with Python's names and defaults.
struct DistributedSamplerOptions {
  std::optional<int> num_replicas = {};  ///< default: the default group's; 1 without a group
  std::optional<int> rank = {};          ///< default: this process's rank
  bool shuffle = true;                   ///< another order in each epoch; false: ascending
  /// Of the order, together with the epoch; equal on all ranks.
  uint64_t seed = 0;
  bool drop_last = false;  ///< drop the end instead of padding it
};

/// The position within an epoch, for snapshots; equal on all ranks.
struct SamplerState {
  uint64_t seed = 0;     ///< DistributedSamplerOptions::seed
  int64_t epoch = 0;     ///< as set_epoch() set it; 0 before
  int64_t consumed = 0;  ///< samples of all ranks together, without padding
  int64_t size = 0;      ///< of the data set
  bool shuffle = true;   ///< DistributedSamplerOptions::shuffle

  /// Equal if all five members are.
  bool operator==(const SamplerState&) const = default;
};

/// Each rank's part of a data set, in Python's order. Python counterpart:
/// torch.utils.data.distributed.DistributedSampler. Copies share their state. Any thread, one at a
/// time.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// `size`: samples of the data set. Throws std::invalid_argument unless 0 <= rank < num_replicas.
  explicit DistributedSampler(size_t size, DistributedSamplerOptions options = {});

  /// Starts another epoch, with another order if `shuffle`. With the current epoch it does nothing
  /// unless that epoch has been exhausted, so a loop may call it after load_state.
  void set_epoch(int64_t epoch);
  /// The epoch that set_epoch() or load_state() set; 0 before.
  int64_t epoch() const;

  /// Starts a pass; loaders call it in begin(). The pass starts where load_state has put it if
  /// next() has not been called since, else at the start of the epoch. `new_size`: the data set has
  /// another size.
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  /// The next at most `batch_size` indices into the data set; none at the end of the epoch. The
  /// call after that starts another pass, in the same order unless set_epoch was called; the first
  /// time it prints a warning. In a copy on which reset() was called, the end remains until the
  /// next reset(), because a loader's threads call next() again for each batch in progress.
  std::optional<std::vector<size_t>> next(size_t batch_size) override;

  size_t size() const;       ///< samples per rank in a whole epoch; Python: len()
  size_t remaining() const;  ///< of this rank's samples, how many next() has not given
  /// This rank's indices: of the whole epoch, or of what was left of it at load_state.
  std::vector<size_t> indices() const;
  /// True at i if indices()[i] is padding, that is a sample that another rank has, too.
  std::vector<bool> is_padding() const;

  /// Reports that training has used `samples_of_this_rank` more samples. The loader of
  /// data::make_data_loader calls it; call it with another loader that prefetches: from the first
  /// call on, state() counts these samples instead of those that next() has given. Throws
  /// std::invalid_argument if the sum is more than next() has given.
  void mark_consumed(size_t samples_of_this_rank);
  /// The position after the samples that next() has given; after the first mark_consumed(), after
  /// those that it has counted.
  SamplerState state() const;
  /// Continues after the consumed samples, at any world size: divides the rest of the epoch's order
  /// among the ranks, so that each sample of the epoch is used exactly once (with drop_last: at
  /// most once). Takes seed and epoch from `state`. Throws std::invalid_argument if `state` has
  /// another data set size or another `shuffle`.
  void load_state(const SamplerState& state);
  /// From now on this process takes the samples of `rank` of `num_replicas`, after those that all
  /// ranks have consumed so far. All ranks call it at the same position. With the same numbers as
  /// before it does nothing. Throws std::invalid_argument unless 0 <= rank < num_replicas.
  void bind(int num_replicas, int rank);

  /// @{
  /// state() as a buffer of a torch archive, and load_state() from it; for torch::save and
  /// torch::load. Snapshots use state() instead. load() throws std::invalid_argument if the archive
  /// has another state.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
  /// @}

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // copies are one sampler: loaders copy theirs
  bool waits_for_reset_ = false;    // only reset() starts this copy's next pass
};

}  // namespace cpprun::data

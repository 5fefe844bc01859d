/// @file
/// UnpaddedDistributedSampler: each sample of a data set on exactly one rank, in order, without
/// padding.
///
/// For evaluation: Python's DistributedSampler pads, and so counts some samples twice. No Python
/// counterpart. Rank r gets r, r + num_replicas, ... The ranks' sizes may differ by one sample, so
/// do not call collectives inside the loop. One object serves any number of evaluations. One
/// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <torch/data/samplers/base.h>

namespace cpprun::data {

/// Options of UnpaddedDistributedSampler.
struct UnpaddedDistributedSamplerOptions {
  std::optional<int> num_replicas = {};  ///< default: the default group's; 1 without a group
  std::optional<int> rank = {};          ///< default: this process's rank
};

/// Each sample of a data set on exactly one rank, in ascending order, for evaluation. Ranks may
/// differ by one sample, so the loop must contain no collective. One thread.
class UnpaddedDistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// `size`: samples of the data set. Throws std::invalid_argument unless 0 <= rank < num_replicas.
  explicit UnpaddedDistributedSampler(size_t size, UnpaddedDistributedSamplerOptions options = {});

  /// Starts a pass at the first sample; loaders call it in begin(). `new_size`: the data set has
  /// another size.
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  /// The next at most `batch_size` indices; none at the end of a pass. The next call starts another
  /// pass, as in DistributedSampler.
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t size() const;  ///< samples of this rank
  /// All indices of this rank in a pass: rank, rank + num_replicas, ...
  std::vector<size_t> indices() const;

  /// No effect; for code that accepts any data::Sampler.
  void set_epoch(int64_t) {}
  size_t state() const { return position_; }  ///< how many samples next() has given

  /// @{
  /// The position as a buffer of a torch archive, and back; for torch::save and torch::load. load()
  /// throws std::invalid_argument for a position outside this rank's samples.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
  /// @}

 private:
  size_t total_, replicas_, rank_, position_ = 0;
  bool is_exhausted_ = false, waits_for_reset_ = false;
};

}  // namespace cpprun::data

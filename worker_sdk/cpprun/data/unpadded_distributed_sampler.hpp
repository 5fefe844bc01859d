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

struct UnpaddedDistributedSamplerOptions {
  std::optional<int> num_replicas = {};  ///< default: the default group's; 1 without a group
  std::optional<int> rank = {};
};

class UnpaddedDistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// Throws std::invalid_argument unless 0 <= rank < num_replicas.
  explicit UnpaddedDistributedSampler(size_t size, UnpaddedDistributedSamplerOptions options = {});

  void reset(std::optional<size_t> new_size = std::nullopt) override;
  /// The next at most `batch_size` indices; none at the end of a pass. The next call starts another
  /// pass, as in DistributedSampler.
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t size() const;  ///< samples of this rank
  std::vector<size_t> indices() const;

  /// No effect; for code that accepts any data::Sampler.
  void set_epoch(int64_t) {}
  size_t state() const { return position_; }  ///< how many samples next() has given

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  size_t total_, replicas_, rank_, position_ = 0;
  bool is_exhausted_ = false, waits_for_reset_ = false;
};

}  // namespace cpprun::data

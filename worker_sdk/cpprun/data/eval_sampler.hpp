// UnpaddedDistributedSampler: each sample of a data set on exactly one rank, in order, without
// padding.
//
// Rank r has r, r + world size, ... Shares may differ by one sample, so no collective may stand
// inside the loop. One object serves any number of evaluations. One thread. Python has none; its
// DistributedSampler counts some samples twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <torch/data/samplers/base.h>

namespace cpprun::data {

struct UnpaddedDistributedSamplerOptions {
  std::optional<int> num_replicas = {};  // default: of the default group; 1 without a group
  std::optional<int> rank = {};
};

class UnpaddedDistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  // Throws std::invalid_argument when the rank is not one of the replicas.
  explicit UnpaddedDistributedSampler(size_t size, UnpaddedDistributedSamplerOptions options = {});

  void reset(std::optional<size_t> new_size = std::nullopt) override;
  // None at the end of a pass; the call after that begins another, as with DistributedSampler.
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t size() const;  // of this rank's share
  std::vector<size_t> indices() const;

  // The order never changes; there so that it may stand where a training sampler does.
  void set_epoch(int64_t) {}
  size_t state() const { return position_; }  // how many of the share next() has given

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  size_t total_, replicas_, rank_, position_ = 0;
  bool is_exhausted_ = false, waits_for_reset_ = false;
};

}  // namespace cpprun::data

// EvalSampler: each sample of a data set on exactly one rank, in order, without padding.
//
// Shares may differ by one sample, so no collective may stand inside the loop. Python has none; its
// DistributedSampler counts some samples twice.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <torch/data/samplers/base.h>

namespace cpprun::data {

struct EvalSamplerOptions {
  std::optional<int> num_replicas;  // default: the world size of the default group, 1 without one
  std::optional<int> rank;
};

class EvalSampler : public torch::data::samplers::Sampler<> {
 public:
  explicit EvalSampler(size_t size, EvalSamplerOptions options = {});

  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t size() const;  // of this rank's share
  std::vector<size_t> indices() const;

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  size_t total_, replicas_, rank_, position_ = 0;
};

}  // namespace cpprun::data

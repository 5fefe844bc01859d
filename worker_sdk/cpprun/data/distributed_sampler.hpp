// DistributedSampler: each rank its share of a data set, in Python's order, bit for bit.
//
//   data::DistributedSampler sampler(dataset.size().value(), {.shuffle = true, .seed = 1});
//   auto loader = torch::data::make_data_loader(std::move(dataset), sampler, 64);
//   for (...) { sampler.set_epoch(epoch); for (auto& batch : *loader) ... }
//
// Copies share their state, so that set_epoch reaches the copy inside a loader. Any thread; one at
// a time. Python counterpart: torch.utils.data.distributed.DistributedSampler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/data/samplers/base.h>

namespace cpprun::data {

struct DistributedSamplerOptions {
  std::optional<int> num_replicas;  // default: the world size of the default group, 1 without one
  std::optional<int> rank;
  bool shuffle = true;
  uint64_t seed = 0;  // the same on all ranks
  bool drop_last = false;
};

// Where a training epoch stands, for snapshots; the same on all ranks. `consumed` counts samples of
// all ranks together, padding not included.
struct SamplerState {
  uint64_t seed = 0;
  int64_t training_epoch = 0;
  int64_t consumed = 0;
  int64_t size = 0;  // of the data set
};

class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  explicit DistributedSampler(size_t size, DistributedSamplerOptions options = {});

  // Another order for another training epoch, from its start.
  void set_epoch(int64_t training_epoch);
  int64_t epoch() const;

  void reset(std::optional<size_t> new_size = std::nullopt) override;
  // The next at most `batch_size` indices; none: the end of the training epoch.
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t size() const;  // of this rank's share of one whole training epoch
  // This rank's whole share, whatever has been consumed.
  std::vector<size_t> indices() const;
  // True where indices()[i] is padding: a sample that another rank has as well.
  std::vector<bool> is_padding() const;

  // `consumed_batches` of this rank's loader have been trained on; loaders prefetch, so only the
  // training loop knows. Without it the state counts what next() gave.
  void mark_consumed(size_t samples_of_this_rank);
  SamplerState state() const;
  // Goes on behind what was consumed, at any world size: the rest of the training epoch's order is
  // dealt anew, and each sample of the training epoch is trained on exactly once. Throws
  // std::invalid_argument when the state is another data set's.
  void load_state(const SamplerState& state);

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // copies are one sampler: loaders copy theirs
};

}  // namespace cpprun::data

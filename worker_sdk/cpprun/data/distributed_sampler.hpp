// DistributedSampler: each rank its share of a data set, in Python's order, bit for bit.
//
//   data::DistributedSampler sampler(dataset.size().value(), {.shuffle = true, .seed = 1});
//   auto loader = torch::data::make_data_loader(std::move(dataset), sampler, 64);
//   for (...) { sampler.set_epoch(epoch); for (auto& batch : *loader) ... }
//
// Copies share their state, so that set_epoch reaches the copy inside a loader. Any thread; one at
// a time. Python counterpart: torch.utils.data.distributed.DistributedSampler, which can't resume.
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
  std::optional<int> num_replicas = {};  // default: of the default group; 1 without a group
  std::optional<int> rank = {};
  bool shuffle = true;
  uint64_t seed = 0;  // the same on all ranks
  bool drop_last = false;
};

// Where a training epoch stands, for snapshots; the same on all ranks. `consumed` counts samples of
// all ranks together, padding not included.
struct SamplerState {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t consumed = 0;
  int64_t size = 0;  // of the data set
  bool shuffle = true;

  bool operator==(const SamplerState&) const = default;
};

class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  // Throws std::invalid_argument when the rank is not one of the replicas.
  explicit DistributedSampler(size_t size, DistributedSamplerOptions options = {});

  // Another order for another training epoch, from its start. In the middle of that training epoch
  // it changes nothing, so that a loop may call it after load_state.
  void set_epoch(int64_t epoch);
  int64_t epoch() const;

  // A pass begins; loaders call it in begin(). Goes on where load_state put it if nothing has been
  // given since, else at the start of the training epoch. With `new_size` the data set has changed.
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  // The next at most `batch_size` indices; none: the end of the training epoch. The call after that
  // begins another pass, in the same order unless set_epoch was called; the first time it warns. In
  // a copy on which reset() was called the end stays the end until the next reset(): the threads of
  // a loader ask once more for each batch that is under way.
  std::optional<std::vector<size_t>> next(size_t batch_size) override;

  size_t size() const;       // of this rank's share of one whole training epoch; Python's len()
  size_t remaining() const;  // of this rank's share, how many next() has not given
  // This rank's share: of the whole training epoch, or of what was left of it at load_state.
  std::vector<size_t> indices() const;
  // True where indices()[i] is padding: a sample that another rank has as well.
  std::vector<bool> is_padding() const;

  // This many more of this rank's samples have been trained on. Loaders prefetch, so only the
  // training loop knows. From its first call on, state() counts these; before it, what next() gave.
  // Throws std::invalid_argument when that is more than next() gave.
  void mark_consumed(size_t samples_of_this_rank);
  SamplerState state() const;
  // Goes on behind what was consumed, at any world size: the rest of the training epoch's order is
  // dealt anew, and each sample of the training epoch is trained on exactly once (with drop_last:
  // at most once). Seed and training epoch become the state's. Throws std::invalid_argument when
  // the state is another data set's, or of shuffled data and this is not, or the other way round.
  void load_state(const SamplerState& state);

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // copies are one sampler: loaders copy theirs
  bool waits_for_reset_ = false;    // this copy's passes begin with reset() alone
};

}  // namespace cpprun::data

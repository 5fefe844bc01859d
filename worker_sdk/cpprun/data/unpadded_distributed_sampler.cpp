#include "cpprun/data/unpadded_distributed_sampler.hpp"

#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "cpprun/data/replica.hpp"

namespace cpprun::data {

UnpaddedDistributedSampler::UnpaddedDistributedSampler(size_t size,
                                                       UnpaddedDistributedSamplerOptions options)
    : total_(size) {
  const Replica replica = replica_of(options.num_replicas, options.rank);
  replicas_ = replica.count;
  rank_ = replica.rank;
}

void UnpaddedDistributedSampler::reset(std::optional<size_t> new_size) {
  total_ = new_size.value_or(total_);
  position_ = 0;
  is_exhausted_ = false;
  waits_for_reset_ = true;
}

std::optional<std::vector<size_t>> UnpaddedDistributedSampler::next(size_t batch_size) {
  if (is_exhausted_ && !waits_for_reset_) {
    position_ = 0;
    is_exhausted_ = false;
  }
  const size_t count = std::min(batch_size, size() - position_);
  is_exhausted_ = count == 0;
  if (is_exhausted_) return std::nullopt;
  std::vector<size_t> batch(count);
  for (size_t& index : batch) index = rank_ + replicas_ * position_++;
  return batch;
}

size_t UnpaddedDistributedSampler::size() const {
  return total_ > rank_ ? (total_ - rank_ - 1) / replicas_ + 1 : 0;
}

std::vector<size_t> UnpaddedDistributedSampler::indices() const {
  std::vector<size_t> all(size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = rank_ + replicas_ * i;
  return all;
}

void UnpaddedDistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("cpprun_eval_position", torch::tensor(static_cast<int64_t>(position_)),
                /*is_buffer=*/true);
}

void UnpaddedDistributedSampler::load(torch::serialize::InputArchive& archive) {
  at::Tensor position = torch::empty({}, torch::kLong);
  archive.read("cpprun_eval_position", position, /*is_buffer=*/true);
  const auto saved = position.item<int64_t>();
  if (saved < 0 || static_cast<size_t>(saved) > size()) {
    throw std::invalid_argument("the archive's position " + std::to_string(saved) +
                                " is outside this rank's share of " + std::to_string(size()));
  }
  position_ = static_cast<size_t>(saved);
}

}  // namespace cpprun::data

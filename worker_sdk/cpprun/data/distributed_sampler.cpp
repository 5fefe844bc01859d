#include "cpprun/data/distributed_sampler.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "cpprun/data/index_partition.hpp"
#include "cpprun/data/replica.hpp"
#include "cpprun/dist/live_objects.hpp"

namespace cpprun::data {

struct DistributedSampler::Shared {
  size_t size = 0;
  Replica replica;
  bool shuffle = true, drop_last = false;
  uint64_t seed = 0;

  int64_t epoch = 0;
  size_t consumed_before = 0;  // positions of the order that were consumed before this pass
  size_t given = 0;            // of this rank's indices, how many next() has given in this pass
  size_t marked = 0;           // of `given`, how many mark_consumed has counted
  bool has_marks = false;
  bool is_exhausted = false;

  dist::Counted<dist::LiveObjects::samplers> counted;

  bool has_indices = false;
  std::vector<size_t> own_indices;  // valid if has_indices

  IndexPartition partition() const {
    return {size - consumed_before, replica.count, replica.rank, drop_last};
  }
  void begin(size_t first_position);
  void begin_pass();
  void assign_indices();
};

void DistributedSampler::Shared::begin(size_t first_position) {
  has_indices = has_indices && consumed_before == first_position;
  consumed_before = first_position;
  given = marked = 0;
  is_exhausted = false;
}

// The pass continues after load_state, otherwise it starts at the beginning.
void DistributedSampler::Shared::begin_pass() {
  if (shuffle && is_exhausted) {
    TORCH_WARN_ONCE(
        "DistributedSampler begins another pass in the same order as the last one: call "
        "sampler.set_epoch(epoch) before each pass");
  }
  const bool is_fresh = given == 0 && !is_exhausted;
  begin(is_fresh ? consumed_before : 0);
}

// Makes the order of the whole epoch, but keeps only this rank's indices.
void DistributedSampler::Shared::assign_indices() {
  if (has_indices) return;
  const IndexPartition split = partition();
  own_indices.resize(split.samples_per_replica());
  at::Tensor order;
  const int64_t* order_data = nullptr;
  if (shuffle && size > 0) {
    order = torch::randperm(static_cast<int64_t>(size),
                            at::detail::createCPUGenerator(seed + static_cast<uint64_t>(epoch)),
                            torch::kLong);
    order_data = order.const_data_ptr<int64_t>();
  }
  for (size_t i = 0; i < own_indices.size(); ++i) {
    const size_t position = consumed_before + split.position(i);
    own_indices[i] = order_data ? static_cast<size_t>(order_data[position]) : position;
  }
  has_indices = true;
}

DistributedSampler::DistributedSampler(size_t size, DistributedSamplerOptions options)
    : shared_(std::make_shared<Shared>()) {
  shared_->size = size;
  shared_->replica = replica_of(options.num_replicas, options.rank);
  shared_->shuffle = options.shuffle;
  shared_->drop_last = options.drop_last;
  shared_->seed = options.seed;
}

void DistributedSampler::set_epoch(int64_t epoch) {
  if (epoch == shared_->epoch && !shared_->is_exhausted) return;
  shared_->epoch = epoch;
  shared_->has_indices = false;
  shared_->begin(0);
}

int64_t DistributedSampler::epoch() const { return shared_->epoch; }

void DistributedSampler::reset(std::optional<size_t> new_size) {
  if (new_size && *new_size != shared_->size) {
    shared_->size = *new_size;
    shared_->has_indices = false;
    shared_->begin(0);
  }
  shared_->begin_pass();
  waits_for_reset_ = true;
}

std::optional<std::vector<size_t>> DistributedSampler::next(size_t batch_size) {
  if (shared_->is_exhausted && !waits_for_reset_) shared_->begin_pass();
  shared_->assign_indices();
  const std::vector<size_t>& own_indices = shared_->own_indices;
  const size_t count = std::min(batch_size, own_indices.size() - shared_->given);
  if (count == 0) {
    shared_->is_exhausted = true;
    return std::nullopt;
  }
  const auto first = own_indices.begin() + static_cast<std::ptrdiff_t>(shared_->given);
  shared_->given += count;
  return std::vector<size_t>(first, first + static_cast<std::ptrdiff_t>(count));
}

size_t DistributedSampler::size() const {
  IndexPartition whole = shared_->partition();
  whole.length = shared_->size;
  return whole.samples_per_replica();
}

size_t DistributedSampler::remaining() const {
  return shared_->partition().samples_per_replica() - shared_->given;
}

std::vector<size_t> DistributedSampler::indices() const {
  shared_->assign_indices();
  return shared_->own_indices;
}

std::vector<bool> DistributedSampler::is_padding() const {
  const IndexPartition split = shared_->partition();
  std::vector<bool> padding(split.samples_per_replica());
  for (size_t i = 0; i < padding.size(); ++i) padding[i] = split.is_padding(i);
  return padding;
}

void DistributedSampler::mark_consumed(size_t samples_of_this_rank) {
  if (shared_->marked + samples_of_this_rank > shared_->given) {
    throw std::invalid_argument(
        "mark_consumed(" + std::to_string(samples_of_this_rank) + ") after " +
        std::to_string(shared_->marked) + " samples, but the sampler gave only " +
        std::to_string(shared_->given) +
        " in this pass: it counts samples of this rank, each once, not batches");
  }
  shared_->marked += samples_of_this_rank;
  shared_->has_marks = true;
}

SamplerState DistributedSampler::state() const {
  const size_t rounds = shared_->has_marks ? shared_->marked : shared_->given;
  return {.seed = shared_->seed,
          .epoch = shared_->epoch,
          .consumed = static_cast<int64_t>(shared_->consumed_before +
                                           shared_->partition().consumed_after(rounds)),
          .size = static_cast<int64_t>(shared_->size),
          .shuffle = shared_->shuffle};
}

void DistributedSampler::load_state(const SamplerState& state) {
  if (state.size != static_cast<int64_t>(shared_->size)) {
    throw std::invalid_argument("the sampler's state is of a data set of " +
                                std::to_string(state.size) + " samples, this one has " +
                                std::to_string(shared_->size));
  }
  if (state.consumed < 0 || state.consumed > state.size) {
    throw std::invalid_argument("by the sampler's state " + std::to_string(state.consumed) +
                                " of " + std::to_string(state.size) + " samples were consumed");
  }
  if (state.shuffle != shared_->shuffle) {
    throw std::invalid_argument(std::string("the sampler's state is of ") +
                                (state.shuffle ? "shuffled" : "unshuffled") +
                                " data: construct this sampler with the same `shuffle`");
  }
  shared_->seed = state.seed;
  shared_->epoch = state.epoch;
  shared_->has_indices = false;
  shared_->begin(static_cast<size_t>(state.consumed));
}

void DistributedSampler::bind(int num_replicas, int rank) {
  const Replica next = replica_of(num_replicas, rank);
  if (next == shared_->replica) return;
  const SamplerState now = state();  // of the ranks before
  shared_->replica = next;
  load_state(now);
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  const SamplerState now = state();
  archive.write("cpprun_sampler",
                torch::tensor({static_cast<int64_t>(now.seed), now.epoch, now.consumed, now.size,
                               static_cast<int64_t>(now.shuffle)},
                              torch::kLong),
                /*is_buffer=*/true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  at::Tensor saved = torch::empty({0}, torch::kLong);
  archive.read("cpprun_sampler", saved, /*is_buffer=*/true);
  if (saved.numel() != 5 || saved.scalar_type() != torch::kLong) {
    throw std::invalid_argument("the archive holds no state of a DistributedSampler");
  }
  const int64_t* const numbers = saved.const_data_ptr<int64_t>();
  load_state({.seed = static_cast<uint64_t>(numbers[0]),
              .epoch = numbers[1],
              .consumed = numbers[2],
              .size = numbers[3],
              .shuffle = numbers[4] != 0});
}

}  // namespace cpprun::data

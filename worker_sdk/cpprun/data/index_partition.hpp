// How a list of samples is dealt to ranks, as pure numbers: one card each, round after round.
//
// Not the order itself: `position` says which place of the order a rank's i-th sample has. Used by
// DistributedSampler, which also deals what a broken off training epoch has left.
#pragma once

#include <cstddef>

namespace cpprun::data {

struct IndexPartition {
  size_t length = 0;  // of the list
  size_t replicas = 1;
  size_t rank = 0;
  bool drop_last = false;  // cut the list to whole rounds; else its head fills the last round

  // Samples of one rank; the same for all.
  size_t samples_per_replica() const {
    return drop_last ? length / replicas : (length + replicas - 1) / replicas;
  }
  bool is_padding(size_t i) const { return i * replicas + rank >= length; }
  size_t position(size_t i) const { return (i * replicas + rank) % length; }
  // Samples of the list that are used up when every rank has had `rounds` of its own.
  size_t consumed_after(size_t rounds) const {
    return rounds >= (length + replicas - 1) / replicas ? length : rounds * replicas;
  }
};

}  // namespace cpprun::data

// IndexPartition: which positions of an ordered list each rank gets: rank r gets r, r + replicas,
// ... Pure numbers. DistributedSampler uses it for whole epochs and for the rest of an interrupted
// one.
#pragma once

#include <cstddef>

namespace cpprun::data {

struct IndexPartition {
  size_t length = 0;  // of the list
  size_t replicas = 1;
  size_t rank = 0;
  bool drop_last = false;  // otherwise the list's beginning pads it

  // Number of samples of each rank.
  size_t samples_per_replica() const {
    return drop_last ? length / replicas : (length + replicas - 1) / replicas;
  }
  bool is_padding(size_t i) const { return i * replicas + rank >= length; }
  // Position in the list of this rank's i-th sample.
  size_t position(size_t i) const { return (i * replicas + rank) % length; }
  // Number of samples of the list that are consumed once every rank has used `rounds` of its own.
  size_t consumed_after(size_t rounds) const {
    return rounds >= (length + replicas - 1) / replicas ? length : rounds * replicas;
  }
};

}  // namespace cpprun::data

#include "cpprun/data/replica.hpp"

#include <stdexcept>
#include <string>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::data {

Replica replica_of(std::optional<int> num_replicas, std::optional<int> rank) {
  const bool has_group = (!num_replicas || !rank) && dist::is_initialized();
  const int count = num_replicas ? *num_replicas : has_group ? dist::get_world_size() : 1;
  const int own = rank ? *rank : has_group ? dist::get_rank() : 0;
  if (count < 1) {
    throw std::invalid_argument("num_replicas is " + std::to_string(count) +
                                ": it must be at least 1");
  }
  if (own < 0 || own >= count) {
    throw std::invalid_argument("Invalid rank " + std::to_string(own) +
                                ", rank should be in the interval [0, " +
                                std::to_string(count - 1) + "]");
  }
  return {static_cast<size_t>(count), static_cast<size_t>(own)};
}

}  // namespace cpprun::data

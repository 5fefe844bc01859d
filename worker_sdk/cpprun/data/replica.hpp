// Which of how many shares of a data set: what the samplers take from the default process group.
#pragma once

#include <cstddef>
#include <optional>

namespace cpprun::data {

struct Replica {
  size_t count = 1;
  size_t rank = 0;
};

// What is not given is the default group's; without a group 1 and 0. Throws std::invalid_argument
// when `rank` is not below `num_replicas`.
Replica replica_of(std::optional<int> num_replicas, std::optional<int> rank);

}  // namespace cpprun::data

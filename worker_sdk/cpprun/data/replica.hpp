// Replica: how many replicas divide a data set, and which one this process is. Private to data.
#pragma once

#include <cstddef>
#include <optional>

namespace cpprun::data {

struct Replica {
  size_t count = 1;
  size_t rank = 0;

  bool operator==(const Replica&) const = default;
};

// Defaults come from the default process group; without a group 1 and 0. Throws
// std::invalid_argument unless 0 <= rank < num_replicas.
Replica replica_of(std::optional<int> num_replicas, std::optional<int> rank);

}  // namespace cpprun::data

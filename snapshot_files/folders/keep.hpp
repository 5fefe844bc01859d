// Which snapshots may go. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cpprun::snapshot_files {

struct KeepRule {
  size_t last = 3;    // the newest so many; 0 counts as 1: the newest never goes
  int64_t every = 0;  // and each whose step is a multiple; 0: none
};

// Of the steps of complete snapshots, in any order: those that the rule does not keep, ascending.
// Steps above `newest` are neither counted nor removed.
std::vector<int64_t> steps_to_remove(std::vector<int64_t> complete, const KeepRule& rule,
                                     int64_t newest = INT64_MAX);

}  // namespace cpprun::snapshot_files

// The rule that decides which snapshots to remove. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cpprun::snapshot_files {

struct KeepRule {
  size_t last = 3;    // keeps this many of the newest; 0 counts as 1: the newest is never removed
  int64_t every = 0;  // also keeps multiples of this step; 0: none
};

// Of the steps of complete snapshots, in any order: those to remove, ascending. Steps above
// `newest` are neither counted nor removed.
std::vector<int64_t> steps_to_remove(std::vector<int64_t> complete, const KeepRule& rule,
                                     int64_t newest = INT64_MAX);

}  // namespace cpprun::snapshot_files

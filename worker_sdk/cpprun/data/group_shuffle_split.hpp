// group_shuffle_split: two sides of a data set, with all samples of a group on the same side.
//
// For images of patients: a net must not be validated on a patient that it was trained on. The
// split depends on the names of the groups, the fraction and the seed, and on nothing else: not on
// the order of rows, the machine or the world size. Python counterpart (of the idea, not of the
// numbers): sklearn's GroupShuffleSplit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cpprun::data {

struct GroupShuffleSplit {
  std::vector<size_t> train;  // indices of samples, ascending
  std::vector<size_t> validation;
  // Equal on two ranks exactly when (but for accidents of 1 in 2^64) their splits are.
  uint64_t fingerprint() const;
};

// `groups[i]` is the group of sample i. `train_fraction` of all groups, rounded to whole groups,
// are for training. Throws std::invalid_argument when the fraction is not within 0 and 1.
GroupShuffleSplit group_shuffle_split(const std::vector<std::string>& groups, double train_fraction,
                                      uint64_t seed);

}  // namespace cpprun::data

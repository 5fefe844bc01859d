/// @file
/// group_shuffle_split: splits a data set so that all samples of a group are on the same side, for
/// example all images of a patient: a model must not be validated on patients that it was trained
/// on.
///
/// The split depends only on the groups' names, the fraction and the seed, not on the order of
/// samples, the machine or the world size. Python counterpart: sklearn's GroupShuffleSplit, with
/// other random numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cpprun::data {

/// A split of a data set into two sides. The result of group_shuffle_split().
struct GroupShuffleSplit {
  std::vector<size_t> train;       ///< indices of the samples for training, ascending
  std::vector<size_t> validation;  ///< indices of all other samples, ascending
  /// Equal on two ranks if and only if their splits are, except for hash collisions (64 bits).
  uint64_t fingerprint() const;
};

/// `groups[i]`: the group of sample i. `train_fraction`: the fraction of groups for training, 0 to
/// 1, rounded to whole groups. Throws std::invalid_argument outside that range.
GroupShuffleSplit group_shuffle_split(const std::vector<std::string>& groups, double train_fraction,
                                      uint64_t seed);

}  // namespace cpprun::data

#include "cpprun/data/group_shuffle_split.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "common/hash.hpp"

namespace cpprun::data {
namespace {

// Little-endian on every machine.
uint64_t add_number(uint64_t hash, uint64_t number) {
  for (int byte = 0; byte < 8; ++byte, number >>= 8) {
    hash = fnv1a(static_cast<uint8_t>(number & 0xff), hash);
  }
  return hash;
}

}  // namespace

GroupShuffleSplit group_shuffle_split(const std::vector<std::string>& groups, double train_fraction,
                                      uint64_t seed) {
  if (!(train_fraction >= 0 && train_fraction <= 1)) {
    throw std::invalid_argument("train_fraction is " + std::to_string(train_fraction) +
                                ": it must be between 0 and 1");
  }
  const std::set<std::string> sorted(groups.begin(), groups.end());
  const std::vector<std::string> names(sorted.begin(), sorted.end());
  const at::Tensor order = torch::randperm(static_cast<int64_t>(names.size()),
                                           at::detail::createCPUGenerator(seed), torch::kLong);
  const auto for_training = std::llround(train_fraction * static_cast<double>(names.size()));
  std::set<std::string> train_names;
  for (int64_t i = 0; i < for_training; ++i) {
    train_names.insert(names[static_cast<size_t>(order.const_data_ptr<int64_t>()[i])]);
  }
  GroupShuffleSplit split;
  for (size_t i = 0; i < groups.size(); ++i) {
    (train_names.count(groups[i]) ? split.train : split.validation).push_back(i);
  }
  return split;
}

uint64_t GroupShuffleSplit::fingerprint() const {
  uint64_t hash = add_number(kFnvBasis, train.size());
  for (const size_t index : train) hash = add_number(hash, index);
  for (const size_t index : validation) hash = add_number(hash, index);
  return hash;
}

}  // namespace cpprun::data

// sampler_orders FILE: for each line of FILE, `n world rank seed epoch shuffle drop_last`, prints
// the rank's number of samples and a hash of the order; twins/sampler_orders.py prints the same.
#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "cpprun/data/distributed_sampler.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

uint64_t digest(const std::vector<size_t>& order) {
  uint64_t sum = 0;
  for (size_t i = 0; i < order.size(); ++i) sum += (order[i] + 1) * (i * 2'654'435'761 + 1);
  return sum;
}

// All public calls about one rank's samples, which must agree.
std::vector<size_t> given(cpprun::data::DistributedSampler& sampler) {
  std::vector<size_t> all;
  sampler.reset();
  while (const auto batch = sampler.next(97)) all.insert(all.end(), batch->begin(), batch->end());
  return all == sampler.indices() ? all : std::vector<size_t>{};
}

}  // namespace

SDK_CASE(sampler_orders) {
  std::ifstream file(args.at(0));
  size_t n = 0;
  int world = 0, rank = 0;
  uint64_t seed = 0;
  int64_t epoch = 0;
  bool shuffle = false, drop_last = false;
  while (file >> n >> world >> rank >> seed >> epoch >> shuffle >> drop_last) {
    cpprun::data::DistributedSampler sampler(n, {.num_replicas = world,
                                                 .rank = rank,
                                                 .shuffle = shuffle,
                                                 .seed = seed,
                                                 .drop_last = drop_last});
    sampler.set_epoch(epoch);
    std::printf("%zu %" PRIu64 "\n", sampler.size(), digest(given(sampler)));
  }
  return 0;
}

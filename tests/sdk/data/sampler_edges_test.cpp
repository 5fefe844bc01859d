// The sampler's edge cases as literal lists: tiny data sets, padding, cut tails, wrong ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/data/unpadded_distributed_sampler.hpp"

namespace cpprun::data {
namespace {

using ::testing::ElementsAre;
using Shares = std::vector<std::vector<size_t>>;

template <class F>
Shares of_ranks(int world, F make) {
  Shares shares;
  for (int rank = 0; rank < world; ++rank) shares.push_back(make(rank).indices());
  return shares;
}

Shares shares(size_t n, int world, bool drop_last = false) {
  return of_ranks(world, [&](int rank) {
    return DistributedSampler(
        n, {.num_replicas = world, .rank = rank, .shuffle = false, .drop_last = drop_last});
  });
}

Shares shuffled(uint64_t seed, int64_t epoch) {
  return of_ranks(3, [&](int rank) {
    DistributedSampler sampler(10, {.num_replicas = 3, .rank = rank, .seed = seed});
    sampler.set_epoch(epoch);
    return sampler;
  });
}

TEST(SamplerEdges, PadsWithTheFirstSamples) {
  EXPECT_EQ(shares(10, 3), (Shares{{0, 3, 6, 9}, {1, 4, 7, 0}, {2, 5, 8, 1}}));
  EXPECT_EQ(shares(11, 3), (Shares{{0, 3, 6, 9}, {1, 4, 7, 10}, {2, 5, 8, 0}}));
  EXPECT_EQ(shares(9, 3), (Shares{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}}));
  EXPECT_EQ(shares(2, 5), (Shares{{0}, {1}, {0}, {1}, {0}}));
}

TEST(SamplerEdges, DropLastDropsTheTail) {
  EXPECT_EQ(shares(10, 3, true), (Shares{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}}));
  EXPECT_EQ(shares(2, 5, true), (Shares{{}, {}, {}, {}, {}}));
  EXPECT_EQ(shares(10, 5, true), shares(10, 5));
}

TEST(SamplerEdges, ShufflesAsPythonDoes) {
  EXPECT_EQ(shuffled(0, 0), (Shares{{4, 5, 0, 2}, {1, 3, 8, 4}, {7, 9, 6, 1}}));
  EXPECT_EQ(shuffled(0, 1), (Shares{{5, 2, 9, 4}, {6, 0, 3, 5}, {1, 8, 7, 6}}));
  EXPECT_EQ(shuffled(0, 2), (Shares{{8, 5, 0, 3}, {7, 6, 4, 8}, {1, 9, 2, 7}}));
  EXPECT_EQ(shuffled(1, 0), shuffled(0, 1));
}

TEST(SamplerEdges, MarksPadding) {
  DistributedSampler sampler(10, {.num_replicas = 3, .rank = 1});
  EXPECT_THAT(sampler.is_padding(), ElementsAre(false, false, false, true));
  EXPECT_EQ(sampler.size(), 4U);
}

TEST(SamplerEdges, AnEmptyDatasetGivesNoBatch) {
  for (const bool drop_last : {false, true}) {
    DistributedSampler sampler(0, {.num_replicas = 2, .rank = 1, .drop_last = drop_last});
    EXPECT_EQ(sampler.size(), 0U);
    EXPECT_FALSE(sampler.next(4));
    sampler.reset();
    EXPECT_FALSE(sampler.next(4));
  }
}

TEST(SamplerEdges, WorksWithoutAProcessGroup) {
  const DistributedSampler sampler(3, {.shuffle = false});
  EXPECT_THAT(sampler.indices(), ElementsAre(0, 1, 2));
}

TEST(SamplerEdges, RejectsARankOutsideItsWorld) {
  for (const int rank : {-1, 3, 4}) {
    try {
      DistributedSampler sampler(10, {.num_replicas = 3, .rank = rank});
      ADD_FAILURE() << rank << " was accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(std::string(error.what()),
                "Invalid rank " + std::to_string(rank) + ", rank should be in the interval [0, 2]");
    }
  }
  EXPECT_THROW(DistributedSampler(10, {.num_replicas = 0, .rank = 0}), std::invalid_argument);
}

TEST(SamplerEdges, EvaluationHasEachSampleOnce) {
  for (size_t n = 0; n < 20; ++n) {
    for (int world = 1; world < 6; ++world) {
      std::vector<int> seen(n, 0);
      for (int rank = 0; rank < world; ++rank) {
        UnpaddedDistributedSampler sampler(n, {.num_replicas = world, .rank = rank});
        size_t count = 0;
        while (const auto batch = sampler.next(3)) {
          for (const size_t index : *batch) seen.at(index) += 1, ++count;
        }
        EXPECT_EQ(count, sampler.size());
        EXPECT_EQ(count, sampler.indices().size());
      }
      EXPECT_THAT(seen, ::testing::Each(1)) << n << " samples, " << world << " ranks";
    }
  }
}

// One object for all evaluations, as in a trainer.
TEST(SamplerEdges, AReusedEvaluationSamplerStartsOver) {
  UnpaddedDistributedSampler sampler(8, {.num_replicas = 3, .rank = 1});
  for (int evaluation = 0; evaluation < 3; ++evaluation) {
    std::vector<size_t> seen;
    while (const auto batch = sampler.next(2)) {
      seen.insert(seen.end(), batch->begin(), batch->end());
    }
    EXPECT_THAT(seen, ElementsAre(1, 4, 7)) << evaluation;
    EXPECT_EQ(sampler.state(), 3U);
  }
}

TEST(SamplerEdges, AnEvaluationSamplerWithoutSamplesIsEmpty) {
  UnpaddedDistributedSampler sampler(1, {.num_replicas = 2, .rank = 1});
  for (int call = 0; call < 3; ++call) EXPECT_FALSE(sampler.next(2));
}

}  // namespace
}  // namespace cpprun::data

// Samplers inside torch's data loaders, with and without loader threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/data.h>

#include <numeric>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/data/loader.hpp"
#include "cpprun/data/unpadded_distributed_sampler.hpp"

namespace cpprun::data {
namespace {

using ::testing::ElementsAre;

// A data set that returns the requested indices.
struct Indices : torch::data::datasets::BatchDataset<Indices, std::vector<size_t>> {
  explicit Indices(size_t count) : count_(count) {}
  std::vector<size_t> get_batch(torch::ArrayRef<size_t> request) override { return request.vec(); }
  std::optional<size_t> size() const override { return count_; }
  size_t count_;
};

template <class Loader>
std::vector<size_t> pass(Loader& loader) {
  std::vector<size_t> all;
  for (const auto& batch : *loader) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

torch::data::DataLoaderOptions options(size_t batch, size_t workers) {
  return torch::data::DataLoaderOptions(batch).workers(workers);
}

class LoaderThreads : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Sampler, LoaderThreads, ::testing::Values(0, 2));

TEST_P(LoaderThreads, SetEpochReachesTheLoader) {
  DistributedSampler sampler(100, {.num_replicas = 3, .rank = 1, .seed = 7});
  auto loader = torch::data::make_data_loader(Indices(100), sampler, options(8, GetParam()));
  std::vector<std::vector<size_t>> passes;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    sampler.set_epoch(epoch);
    passes.push_back(pass(loader));
    EXPECT_EQ(passes.back(), sampler.indices());
    EXPECT_EQ(passes.back().size(), 34U);
  }
  EXPECT_NE(passes[0], passes[1]);
  EXPECT_NE(passes[1], passes[2]);
}

TEST_P(LoaderThreads, AForgottenSetEpochRepeatsTheOrder) {
  DistributedSampler sampler(100, {.num_replicas = 3, .rank = 1, .seed = 7});
  auto loader = torch::data::make_data_loader(Indices(100), sampler, options(8, GetParam()));
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(pass(loader), sampler.indices());
}

TEST_P(LoaderThreads, PrefetchedBatchesDoNotCount) {
  DistributedSampler sampler(100, {.num_replicas = 2, .rank = 0});
  auto loader = torch::data::make_data_loader(Indices(100), sampler, options(5, GetParam()));
  std::vector<size_t> trained;
  for (const auto& batch : *loader) {
    trained.insert(trained.end(), batch.begin(), batch.end());
    sampler.mark_consumed(batch.size());
    if (trained.size() == 15) break;
  }
  const SamplerState state = sampler.state();
  EXPECT_EQ(state.consumed, 30);
  const std::vector<size_t> whole = sampler.indices();

  DistributedSampler resumed(100, {.num_replicas = 2, .rank = 0});
  resumed.load_state(state);
  auto rest = torch::data::make_data_loader(Indices(100), resumed, options(5, GetParam()));
  const std::vector<size_t> then = pass(rest);
  trained.insert(trained.end(), then.begin(), then.end());
  EXPECT_EQ(trained, whole);
}

// No call of mark_consumed: the loader counts what the loop has got, however far ahead it is.
TEST_P(LoaderThreads, ALoaderOfTheSdkCountsWhatTheLoopGot) {
  DistributedSampler sampler(100, {.num_replicas = 2, .rank = 0});
  auto loader = data::make_data_loader(Indices(100), sampler, options(5, GetParam()));
  std::vector<size_t> trained;
  for (const auto& batch : *loader) {
    trained.insert(trained.end(), batch.begin(), batch.end());
    EXPECT_EQ(sampler.state().consumed, static_cast<int64_t>(2 * trained.size()));
    if (trained.size() == 15) break;
  }
  DistributedSampler resumed(100, {.num_replicas = 2, .rank = 0});
  resumed.load_state(sampler.state());
  auto rest = data::make_data_loader(Indices(100), resumed, options(5, GetParam()));
  const std::vector<size_t> then = pass(rest);
  trained.insert(trained.end(), then.begin(), then.end());
  EXPECT_EQ(trained, sampler.indices());
  EXPECT_EQ(resumed.state().consumed, 100);
  resumed.set_epoch(1);
  EXPECT_EQ(pass(rest), resumed.indices());
  EXPECT_EQ(resumed.indices().size(), 50U);
}

TEST_P(LoaderThreads, EvaluationKeepsTheOrder) {
  auto loader = torch::data::make_data_loader(
      Indices(8), UnpaddedDistributedSampler(8, {.num_replicas = 3, .rank = 1}),
      options(2, GetParam()));
  EXPECT_THAT(pass(loader), ElementsAre(1, 4, 7));
  EXPECT_THAT(pass(loader), ElementsAre(1, 4, 7));
}

// A user's own sampler: the data set backwards, from another offset each training epoch. It does
// not derive from torch's base class.
class Backwards {
 public:
  explicit Backwards(size_t size) : size_(size) {}
  std::optional<std::vector<size_t>> next(size_t batch_size) {
    std::vector<size_t> batch;
    while (batch.size() < batch_size && given_ < size_) {
      batch.push_back((2 * size_ - 1 - given_++ - first_) % size_);
    }
    return batch;  // empty at the end, which loaders accept too
  }
  size_t size() const { return size_; }
  void set_epoch(int64_t epoch) { first_ = static_cast<size_t>(epoch) % size_; }
  size_t state() const { return given_; }
  void reset() { given_ = 0; }

 private:
  size_t size_, first_ = 0, given_ = 0;
};

struct NoSampler {
  std::optional<std::vector<size_t>> next(size_t);
  size_t size() const;
};

static_assert(Sampler<Backwards>);
static_assert(Sampler<DistributedSampler>);
static_assert(Sampler<UnpaddedDistributedSampler>);
static_assert(!Sampler<NoSampler>);

TEST(CustomSampler, WorksInLoaders) {
  for (const size_t workers : {0U, 2U}) {
    auto sampler = std::make_shared<Backwards>(5);
    auto loader = data::make_data_loader(Indices(5), sampler, options(2, workers));
    EXPECT_THAT(pass(loader), ElementsAre(4, 3, 2, 1, 0));
    sampler->set_epoch(1);
    EXPECT_THAT(pass(loader), ElementsAre(3, 2, 1, 0, 4));
    EXPECT_EQ(sampler->state(), 5U);
  }
}

// Starts another epoch after the end of one, as our samplers do, and has no reset().
struct Around {
  std::optional<std::vector<size_t>> next(size_t batch_size) { return inner.next(batch_size); }
  size_t size() const { return inner.size(); }
  void set_epoch(int64_t epoch) { inner.set_epoch(epoch); }
  SamplerState state() const { return inner.state(); }
  DistributedSampler inner{7, {.num_replicas = 1, .rank = 0, .shuffle = false}};
};

TEST(CustomSampler, AnEpochOfTheLoaderEndsWithTheSampler) {
  for (const size_t workers : {0U, 2U}) {
    auto loader =
        data::make_data_loader(Indices(7), std::make_shared<Around>(), options(2, workers));
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<size_t> all;
      for (const auto& batch : *loader) {
        all.insert(all.end(), batch.begin(), batch.end());
        ASSERT_LE(all.size(), 7U);
      }
      EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5, 6));
    }
  }
}

TEST(CustomSampler, BuiltInSamplersFitTheSameLoader) {
  auto sampler = std::make_shared<DistributedSampler>(
      6, DistributedSamplerOptions{.num_replicas = 2, .rank = 1, .shuffle = false});
  auto loader = data::make_data_loader(Indices(6), sampler, options(2, 0));
  EXPECT_THAT(pass(loader), ElementsAre(1, 3, 5));
}

}  // namespace
}  // namespace cpprun::data

// DataLoader: the position of its sampler, errors, and data sets of the user.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <stdexcept>

#include "cpprun/data/data_loader.hpp"

namespace cpprun::data {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

DistributedSampler lone_sampler(size_t size) {
  return DistributedSampler(size, {.num_replicas = 1, .rank = 0});
}

TensorDataset numbers(int64_t size) {
  return TensorDataset({torch::arange(size), torch::arange(size).view({size, 1}) * 10});
}

std::vector<int64_t> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

class DataLoaderTest : public testing::TestWithParam<size_t> {};  // number of workers
INSTANTIATE_TEST_SUITE_P(Workers, DataLoaderTest, testing::Values(0, 1, 3));

TEST_P(DataLoaderTest, GivesTheSamplersOrderInEachEpoch) {
  const auto sampler = lone_sampler(23);
  DataLoader loader(numbers(23), sampler, {.batch_size = 4, .num_workers = GetParam()});
  EXPECT_EQ(loader.size(), 6U);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    auto same = sampler;
    same.set_epoch(epoch);
    std::vector<int64_t> got;
    for (auto& batch : loader) {
      const auto rows = values(batch.at(0));
      got.insert(got.end(), rows.begin(), rows.end());
      EXPECT_TRUE(at::equal(batch.at(1), batch[0].unsqueeze(1) * 10));
    }
    const auto expected = sampler.indices();
    EXPECT_EQ(got, std::vector<int64_t>(expected.begin(), expected.end()));
  }
}

TEST_P(DataLoaderTest, CountsWhatTheLoopHasGot) {
  const auto sampler = lone_sampler(40);
  DataLoader loader(numbers(40), sampler, {.batch_size = 4, .num_workers = GetParam()});
  SamplerState state;
  std::vector<int64_t> before, after;
  int64_t count = 0;
  for (auto& batch : loader) {
    for (const int64_t row : values(batch[0])) before.push_back(row);
    state = sampler.state();
    EXPECT_EQ(state.consumed, ++count * 4);
    if (count == 3) break;
  }
  auto again = lone_sampler(40);
  again.load_state(state);
  DataLoader rest(numbers(40), again, {.batch_size = 4, .num_workers = GetParam()});
  for (auto& batch : rest) {
    for (const int64_t row : values(batch[0])) after.push_back(row);
  }
  EXPECT_EQ(after.size(), 28U);
  before.insert(before.end(), after.begin(), after.end());
  const auto whole = lone_sampler(40).indices();
  EXPECT_EQ(before, std::vector<int64_t>(whole.begin(), whole.end()));
}

TEST_P(DataLoaderTest, LeavesOutTheLastBatchAndEndsAPassThatIsNotOver) {
  DataLoader loader(numbers(10), lone_sampler(10),
                    {.batch_size = 4, .num_workers = GetParam(), .drop_last = true});
  EXPECT_EQ(loader.size(), 2U);
  for (auto& batch : loader) {
    EXPECT_EQ(batch[0].size(0), 4);
    break;
  }
  size_t batches = 0;
  for (auto& batch : loader) batches += batch.size() / 2;
  EXPECT_EQ(batches, 2U);
}

struct Failing {
  size_t size() const { return 8; }
  std::vector<at::Tensor> get_batch(const at::Tensor& indices) const {
    if (indices[0].item<int64_t>() == 4) throw std::runtime_error("sample 4 can't be read");
    return {indices};
  }
};

TEST_P(DataLoaderTest, ErrorsOfTheDataSetReachTheLoop) {
  DataLoader loader(Failing(),
                    DistributedSampler(8, {.num_replicas = 1, .rank = 0, .shuffle = false}),
                    {.batch_size = 2, .num_workers = GetParam()});
  size_t batches = 0;
  EXPECT_THAT(
      [&] {
        for (auto& batch : loader) batches += batch.size();
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("sample 4 can't be read")));
  EXPECT_EQ(batches, 2U);
}

TEST(DataLoaderOptionsTest, NamesWhatIsWrong) {
  EXPECT_THROW(DataLoader(numbers(3), lone_sampler(3), {.batch_size = 0}), std::invalid_argument);
  EXPECT_THROW(DataLoader(numbers(3), lone_sampler(3), {.num_workers = 1, .prefetch_factor = 0}),
               std::invalid_argument);
  EXPECT_THROW(TensorDataset({}), std::invalid_argument);
  EXPECT_THAT(
      [] {
        TensorDataset({torch::ones({2}), torch::ones({3})});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("size mismatch")));
}

TEST(DataLoaderWorkersTest, LoadAheadOfTheLoop) {
  struct Counting {
    std::shared_ptr<std::atomic<int>> loaded;
    size_t size() const { return 100; }
    std::vector<at::Tensor> get_batch(const at::Tensor& indices) const {
      ++*loaded;
      loaded->notify_all();
      return {indices};
    }
  };
  const auto loaded = std::make_shared<std::atomic<int>>(0);
  DataLoader loader(Counting{loaded}, lone_sampler(100), {.batch_size = 1, .num_workers = 2});
  const auto first = loader.begin();
  EXPECT_EQ((*first)[0].numel(), 1);
  for (int now = *loaded; now < 5; now = *loaded) loaded->wait(now);  // the first, and 2 x 2
  EXPECT_EQ(*loaded, 5);
}

}  // namespace
}  // namespace cpprun::data

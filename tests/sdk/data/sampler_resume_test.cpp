// A training epoch that stops and continues with other world sizes visits each sample once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "cpprun/data/distributed_sampler.hpp"

namespace cpprun::data {
namespace {

struct Plan {
  size_t size = 0;
  size_t batch = 1;
  bool shuffle = true, drop_last = false;
  uint64_t seed = 0;
  int64_t epoch = 0;
};

// Trains with one world size: all ranks take the same number of batches, `most` or until the end.
// Counts the trained samples in `seen`, without padding, and returns the state of the training
// epoch.
SamplerState train(const Plan& plan, int world, size_t most,
                   const std::optional<SamplerState>& from, std::vector<int>& seen) {
  std::vector<SamplerState> states;
  for (int rank = 0; rank < world; ++rank) {
    DistributedSampler sampler(plan.size, {.num_replicas = world,
                                           .rank = rank,
                                           .shuffle = plan.shuffle,
                                           .seed = from ? 99 : plan.seed,
                                           .drop_last = plan.drop_last});
    if (from) sampler.load_state(*from);
    sampler.set_epoch(plan.epoch);
    sampler.reset();
    const std::vector<bool> padding = sampler.is_padding();
    size_t position = 0;
    for (size_t batches = 0; batches < most; ++batches) {
      const auto batch = sampler.next(plan.batch);
      if (!batch) break;
      for (const size_t index : *batch) seen.at(index) += padding.at(position++) ? 0 : 1;
    }
    states.push_back(sampler.state());
  }
  for (const SamplerState& state : states) EXPECT_EQ(state, states[0]);
  return states[0];
}

class Chance {
 public:
  explicit Chance(unsigned seed) : engine_(seed) {}
  size_t up_to(size_t most) { return std::uniform_int_distribution<size_t>(0, most)(engine_); }
  int world() { return static_cast<int>(1 + up_to(7)); }
  Plan plan() {
    return {.size = up_to(200),
            .batch = 1 + up_to(9),
            .shuffle = up_to(3) > 0,
            .drop_last = up_to(3) == 0,
            .seed = up_to(1'000'000),
            .epoch = static_cast<int64_t>(up_to(5))};
  }

 private:
  std::mt19937 engine_;
};

TEST(SamplerResume, VisitsEachSampleOnceForAnyWorldSizes) {
  constexpr size_t kToTheEnd = 1'000;
  for (unsigned seed = 0; seed < 3'000; ++seed) {
    SCOPED_TRACE(seed);
    Chance chance(seed);
    const Plan plan = chance.plan();
    std::vector<int> seen(plan.size, 0);
    SamplerState state = train(plan, chance.world(), chance.up_to(20), std::nullopt, seen);
    state = train(plan, chance.world(), chance.up_to(10), state, seen);
    const int last_world = chance.world();
    state = train(plan, last_world, kToTheEnd, state, seen);
    const auto once = static_cast<size_t>(std::count(seen.begin(), seen.end(), 1));
    const auto never = static_cast<size_t>(std::count(seen.begin(), seen.end(), 0));
    EXPECT_EQ(once + never, plan.size) << "some were trained on twice";
    if (!plan.drop_last) {
      EXPECT_EQ(never, 0U);
      EXPECT_EQ(state.consumed, state.size);
    } else {
      EXPECT_LT(never, static_cast<size_t>(last_world));
    }
    if (HasFailure()) return;
  }
}

TEST(SamplerResume, TheSameWorldContinuesWithTheSameBatches) {
  DistributedSampler whole(103, {.num_replicas = 2, .rank = 1, .seed = 4});
  DistributedSampler broken(103, {.num_replicas = 2, .rank = 1, .seed = 4});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(whole.next(8), broken.next(8));
  DistributedSampler resumed(103, {.num_replicas = 2, .rank = 1, .seed = 4});
  resumed.load_state(broken.state());
  resumed.set_epoch(0);
  resumed.reset();
  EXPECT_EQ(resumed.remaining(), whole.remaining());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(whole.next(8), resumed.next(8));
}

TEST(SamplerResume, ANewTrainingEpochIsComplete) {
  DistributedSampler sampler(10, {.num_replicas = 1, .rank = 0, .shuffle = false});
  sampler.load_state({.consumed = 7, .size = 10, .shuffle = false});
  EXPECT_EQ(sampler.next(99), (std::vector<size_t>{7, 8, 9}));
  EXPECT_FALSE(sampler.next(99));
  sampler.reset();  // once more, without set_epoch
  EXPECT_EQ(sampler.next(99)->size(), 10U);
  sampler.set_epoch(1);
  sampler.reset();
  EXPECT_EQ(sampler.next(99)->size(), 10U);
}

// The documented loop with a forgotten set_epoch: as in Python each epoch has the order of the
// first. A finished epoch stays finished until the loader asks for the next batch.
TEST(SamplerResume, WithoutSetEpochTheWholeEpochRepeats) {
  DistributedSampler sampler(10, {.num_replicas = 2, .rank = 1});
  sampler.load_state({.consumed = 4, .size = 10});
  const std::vector<size_t> rest = sampler.indices();
  EXPECT_EQ(sampler.next(99), rest);
  EXPECT_FALSE(sampler.next(99));
  EXPECT_EQ(sampler.remaining(), 0U);
  EXPECT_EQ(sampler.state().consumed, 10);
  for (int pass = 0; pass < 2; ++pass) {
    const auto whole = sampler.next(99);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->size(), 5U);
    EXPECT_EQ(std::vector<size_t>(whole->end() - 3, whole->end()), rest);
    EXPECT_FALSE(sampler.next(99));
  }
}

// Threads of a loader ask again for each batch in progress.
TEST(SamplerResume, AnEpochStartedByResetStaysFinished) {
  DistributedSampler sampler(10, {.num_replicas = 1, .rank = 0});
  DistributedSampler of_loader = sampler;
  of_loader.reset();
  EXPECT_TRUE(of_loader.next(99));
  for (int call = 0; call < 3; ++call) EXPECT_FALSE(of_loader.next(99));
  EXPECT_EQ(sampler.next(99)->size(), 10U);  // a loop beside the loader starts its own epoch
  sampler.next(99);
  of_loader.reset();
  EXPECT_EQ(of_loader.next(99)->size(), 10U);
}

TEST(SamplerResume, SetEpochRestartsAFinishedEpoch) {
  DistributedSampler sampler(10, {.num_replicas = 1, .rank = 0});
  sampler.next(6);
  sampler.set_epoch(0);  // in the middle: changes nothing
  EXPECT_EQ(sampler.remaining(), 4U);
  sampler.next(4);
  EXPECT_FALSE(sampler.next(1));
  sampler.set_epoch(0);
  EXPECT_EQ(sampler.remaining(), 10U);
}

TEST(SamplerResume, TheStateCountsTrainedSamples) {
  DistributedSampler sampler(100, {.num_replicas = 2, .rank = 0});
  sampler.next(10);
  EXPECT_EQ(sampler.state().consumed, 20);
  sampler.mark_consumed(3);
  sampler.mark_consumed(2);
  EXPECT_EQ(sampler.state().consumed, 10);
  EXPECT_THROW(sampler.mark_consumed(6), std::invalid_argument);
  sampler.set_epoch(1);
  sampler.next(10);
  EXPECT_EQ(sampler.state().consumed, 0);
}

TEST(SamplerResume, RejectsTheStateOfAnotherDataset) {
  DistributedSampler sampler(100, {});
  EXPECT_THROW(sampler.load_state({.size = 99}), std::invalid_argument);
  EXPECT_THROW(sampler.load_state({.consumed = 101, .size = 100}), std::invalid_argument);
  EXPECT_THROW(sampler.load_state({.size = 100, .shuffle = false}), std::invalid_argument);
}

TEST(SamplerResume, SurvivesATorchArchive) {
  DistributedSampler sampler(100, {.seed = 0xffff'ffff'ffff'fff0});
  sampler.set_epoch(3);
  sampler.next(17);
  torch::serialize::OutputArchive out;
  sampler.save(out);
  std::stringstream bytes;
  out.save_to(bytes);
  torch::serialize::InputArchive in;
  in.load_from(bytes);
  DistributedSampler other(100, {});
  other.load(in);
  EXPECT_EQ(other.state(), sampler.state());
}

}  // namespace
}  // namespace cpprun::data

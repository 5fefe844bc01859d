// A schedule that is saved at any step and loaded into fresh objects continues exactly; and the
// options that the schedulers reject.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/sdk/optim/schedules_support.hpp"

namespace cpprun::optim {
namespace {

using test::Json;
using test::Scheduled;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<Json> schedules() {
  return {
      {{"kind", "ConstantLR"}, {"total_iters", 30}},
      {{"kind", "LinearLR"}, {"start_factor", 0.2}, {"total_iters", 40}},
      {{"kind", "StepLR"}, {"step_size", 7}, {"gamma", 0.7}},
      {{"kind", "MultiStepLR"}, {"milestones", {5, 50, 50, 51}}, {"gamma", 0.3}},
      {{"kind", "ExponentialLR"}, {"gamma", 0.97}},
      {{"kind", "CosineAnnealingLR"}, {"T_max", 13}, {"eta_min", 0.01}},
      {{"kind", "CosineAnnealingWarmRestarts"}, {"T_0", 5}, {"T_mult", 2}},
      {{"kind", "OneCycleLR"}, {"max_lr", {0.3, 0.6}}, {"total_steps", 101}},
      {{"kind", "ReduceLROnPlateau"}, {"patience", 2}, {"cooldown", 3}, {"factor", 0.8}},
      {{"kind", "LambdaLR"}, {"decays", {0.9, 0.99}}},
      {{"kind", "MultiplicativeLR"}, {"decays", {0.9, 0.99}}},
      {{"kind", "PolynomialLR"}, {"total_iters", 60}, {"power", 2.0}},
      {{"kind", "CyclicLR"}, {"base_lr", {0.01, 0.02}}, {"max_lr", 0.3}, {"step_size_up", 7}},
      {{"kind", "ChainedScheduler"},
       {"schedulers",
        {{{"kind", "LinearLR"}, {"start_factor", 0.1}, {"total_iters", 20}},
         {{"kind", "CyclicLR"}, {"base_lr", 0.01}, {"max_lr", 0.3}, {"step_size_up", 5}},
         {{"kind", "ExponentialLR"}, {"gamma", 0.9}}}}},
      {{"kind", "SequentialLR"},
       {"milestones", {20, 45}},
       {"schedulers",
        {{{"kind", "LinearLR"}, {"start_factor", 0.1}, {"total_iters", 20}},
         {{"kind", "CosineAnnealingLR"}, {"T_max", 15}},
         {{"kind", "ExponentialLR"}, {"gamma", 0.9}}}}},
  };
}

Json setting_of(const Json& schedule, const char* optimizer) {
  std::mt19937 chance(3);
  Json metrics = Json::array();
  for (int i = 0; i < 100; ++i) metrics.push_back(std::normal_distribution<double>(1, 0.2)(chance));
  return {{"optimizer", optimizer},
          {"lrs", {0.1, 0.02}},
          {"schedule", schedule},
          {"halve_at", 33},
          {"metrics", metrics}};
}

TEST(SchedulerState, ContinuesExactlyFromAnyStep) {
  for (const char* optimizer : {"sgd", "adam"}) {
    for (const Json& schedule : schedules()) {
      SCOPED_TRACE(schedule.dump() + optimizer);
      const Json setting = setting_of(schedule, optimizer);
      Scheduled whole(setting);
      std::vector<std::string> lines{whole.line()};
      std::vector<SchedulerState> states{whole.schedule().state_dict()};
      for (int at = 0; at < 100; ++at) {
        whole.step(at);
        lines.push_back(whole.line());
        states.push_back(whole.schedule().state_dict());
      }
      for (size_t from = 0; from < states.size(); from += 1 + from % 5) {
        Scheduled fresh(setting);
        fresh.schedule().load_state_dict(states[from]);
        ASSERT_EQ(fresh.line(), lines[from]);
        ASSERT_EQ(fresh.schedule().state_dict(), states[from]);
        for (size_t at = from; at < 100; ++at) {
          fresh.step(static_cast<int>(at));
          ASSERT_EQ(fresh.line(), lines[at + 1]) << "saved at " << from << ", step " << at;
        }
      }
    }
  }
}

TEST(SchedulerState, RejectsAnotherKindsStateAndChangesNothing) {
  const auto all = schedules();
  for (size_t own = 0; own < all.size(); ++own) {
    for (size_t other = 0; other < all.size(); ++other) {
      if (own == other) continue;
      Scheduled scheduled(setting_of(all[own], "sgd"));
      Scheduled stranger(setting_of(all[other], "sgd"));
      stranger.step(0);
      const SchedulerState before = scheduled.schedule().state_dict();
      EXPECT_THROW(scheduled.schedule().load_state_dict(stranger.schedule().state_dict()),
                   std::invalid_argument)
          << all[own] << " took the state of " << all[other];
      EXPECT_EQ(scheduled.schedule().state_dict(), before);
    }
  }
}

TEST(SchedulerState, RejectsAnotherNumberOfGroups) {
  Json setting = setting_of(schedules()[2], "sgd");
  setting["lrs"] = Json::array({0.1});
  Scheduled one(setting);
  Scheduled source(setting_of(schedules()[2], "sgd"));
  EXPECT_THAT([&] { one.schedule().load_state_dict(source.schedule().state_dict()); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("groups")));
}

class Refusals : public ::testing::Test {
 protected:
  torch::optim::SGD sgd_{{torch::zeros({1}).requires_grad_()}, 0.1};
};

TEST_F(Refusals, RejectsOptionsThatPythonRejects) {
  EXPECT_THROW(ConstantLR(sgd_, {.factor = 1.5}), std::invalid_argument);
  EXPECT_THROW(LinearLR(sgd_, {.start_factor = 0.0}), std::invalid_argument);
  EXPECT_THROW(LinearLR(sgd_, {.end_factor = 1.5}), std::invalid_argument);
  EXPECT_THROW(StepLR(sgd_, {.step_size = 0}), std::invalid_argument);
  EXPECT_THROW(CosineAnnealingWarmRestarts(sgd_, {.T_0 = 0}), std::invalid_argument);
  EXPECT_THROW(OneCycleLR(sgd_, {.max_lr = 0.1}), std::invalid_argument);
  EXPECT_THROW(OneCycleLR(sgd_, {.max_lr = {0.1, 0.2}, .total_steps = 5}), std::invalid_argument);
  EXPECT_THROW(OneCycleLR(sgd_, {.max_lr = 0.1, .total_steps = 5, .pct_start = 1.5}),
               std::invalid_argument);
  EXPECT_THROW(ReduceLROnPlateau(sgd_, {.factor = 1.0}), std::invalid_argument);
  EXPECT_THROW(LambdaLR(sgd_, std::vector<LambdaLR::Lambda>(2)), std::invalid_argument);
  EXPECT_THROW(MultiplicativeLR(sgd_, std::vector<MultiplicativeLR::Lambda>(2)),
               std::invalid_argument);
  EXPECT_THROW(CyclicLR(sgd_, {.base_lr = 0.1, .max_lr = {0.1, 0.2}}), std::invalid_argument);
  EXPECT_THROW(CyclicLR(sgd_, {.base_lr = 0.1, .max_lr = 0.2, .step_size_up = 0}),
               std::invalid_argument);
  EXPECT_THROW(ChainedScheduler({}), std::invalid_argument);
  EXPECT_THROW(ChainedScheduler({std::make_shared<ReduceLROnPlateau>(sgd_)}),
               std::invalid_argument);
  EXPECT_THROW(
      SequentialLR(sgd_,
                   {std::make_shared<ChainedScheduler>(std::vector<std::shared_ptr<LRScheduler>>{
                       std::make_shared<ConstantLR>(sgd_)})},
                   {}),
      std::invalid_argument);
}

TEST_F(Refusals, CyclesOnlyExistingMomentum) {
  torch::optim::Adagrad adagrad({torch::zeros({1}).requires_grad_()}, 0.1);
  EXPECT_THAT([&] { OneCycleLR(adagrad, {.max_lr = 0.1, .total_steps = 5}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("cycle_momentum")));
  OneCycleLR fine(adagrad, {.max_lr = 0.1, .total_steps = 5, .cycle_momentum = false});
}

TEST_F(Refusals, RejectsStepsBeyondTheCycle) {
  OneCycleLR schedule(sgd_, {.max_lr = 0.1, .total_steps = 5});
  for (int i = 0; i < 5; ++i) schedule.step();
  EXPECT_THAT([&] { schedule.step(); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("total steps is 5")));
}

TEST_F(Refusals, PlateauNeedsItsMetric) {
  ReduceLROnPlateau schedule(sgd_);
  LRScheduler& base = schedule;
  EXPECT_THROW(base.step(), std::logic_error);
}

TEST_F(Refusals, RejectsInconsistentSequences) {
  torch::optim::SGD other({torch::zeros({1}).requires_grad_()}, 0.1);
  const auto own = [&] { return std::make_shared<ExponentialLR>(sgd_, ExponentialLROptions{}); };
  const auto make = [&](std::vector<std::shared_ptr<LRScheduler>> parts,
                        std::vector<int64_t> milestones) {
    SequentialLR schedule(sgd_, std::move(parts), std::move(milestones));
  };
  EXPECT_THROW(make({}, {}), std::invalid_argument);
  EXPECT_THROW(make({own(), own()}, {}), std::invalid_argument);
  EXPECT_THROW(make({own(), nullptr}, {3}), std::invalid_argument);
  EXPECT_THROW(make({own(), std::make_shared<ReduceLROnPlateau>(sgd_)}, {3}),
               std::invalid_argument);
  EXPECT_THROW(make({own(), std::make_shared<ExponentialLR>(other, ExponentialLROptions{})}, {3}),
               std::invalid_argument);
}

// Both name the class and the place, also if an earlier scheduler is missing.
TEST_F(Refusals, NamesTheWrongInnerScheduler) {
  torch::optim::SGD other({torch::zeros({1}).requires_grad_()}, 0.1);
  using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;
  const auto own = std::make_shared<ExponentialLR>(sgd_, ExponentialLROptions{});
  const auto foreign = std::make_shared<ExponentialLR>(other, ExponentialLROptions{});
  const auto plateau = std::make_shared<ReduceLROnPlateau>(sgd_);
  const auto expect = [&](const Schedulers& parts, const std::string& text,
                          const std::string& of_sequential = {}) {
    EXPECT_THAT([&] { ChainedScheduler schedule(parts); },
                ThrowsMessage<std::invalid_argument>("ChainedScheduler " + text));
    const std::string& other_text = of_sequential.empty() ? text : of_sequential;
    EXPECT_THAT([&] { SequentialLR schedule(sgd_, parts, {3}); },
                ThrowsMessage<std::invalid_argument>("SequentialLR " + other_text));
  };
  expect({nullptr, foreign}, "got no scheduler at index 0");
  expect({own, nullptr}, "got no scheduler at index 1");
  expect({own, plateau},
         "does not support ReduceLROnPlateau, which needs a number for each step, but got one at "
         "index 1");
  expect({own, foreign},
         "expects all schedulers to belong to the same optimizer, but that at index 1 belongs to "
         "another",
         "expects all schedulers to belong to its optimizer, but that at index 1 belongs to "
         "another");
}

// Schedules of one optimizer start from the rates it had before the first of them; another
// optimizer, even at the same address, has its own.
TEST_F(Refusals, InitialRatesComeFromTheOptimizer) {
  for (const double lr : {0.5, 0.25}) {
    torch::optim::SGD optimizer({torch::zeros({1}).requires_grad_()}, lr);
    const ConstantLR first(optimizer, {.factor = 0.1});
    const ExponentialLR second(optimizer, {.gamma = 0.5});
    EXPECT_THAT(first.get_last_lr(), ElementsAre(lr * 0.1));
    const SequentialLR both(
        optimizer, {std::make_shared<ExponentialLR>(optimizer, ExponentialLROptions{})}, {});
    EXPECT_THAT(both.get_last_lr(), ElementsAre(lr));
  }
}

}  // namespace
}  // namespace cpprun::optim

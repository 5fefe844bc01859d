// Objects with a state of their own in snapshots: GradScaler, communication hooks, samplers and
// classes of the user. Also the ways to keep a spoilt state out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/optim/grad_scaler.hpp"
#include "cpprun/optim/lr_schedulers.hpp"
#include "cpprun/optim/swa_utils.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/prune.hpp"
#include "tests/sdk/snapshot/training_support.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

template <class Object>
concept Trackable = requires(Snapshot& snapshot, Object& object) {
  snapshot.track("one", object);
};

// LibTorch's schedulers do not give their state.
static_assert(Trackable<optim::StepLR>);
static_assert(!Trackable<torch::optim::StepLR>);
static_assert(!Trackable<torch::optim::ReduceLROnPlateauScheduler>);

class StatefulObjects : public ::testing::Test {
 protected:
  StatefulObjects() { fs::create_directories(folder_); }
  ~StatefulObjects() override { fs::remove_all(folder_); }
  SnapshotOptions in_folder() const { return {.dir = folder_.string(), .hints = false}; }

  const fs::path folder_ =
      fs::temp_directory_path() / ("stateful_" + std::to_string(::getpid()) + "_" +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

// One step with a finite gradient, or with an infinite one, which halves the factor.
void step(optim::GradScaler& scaler, bool is_finite) {
  at::Tensor weight = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD sgd({weight}, 0.1);
  scaler.scale(weight.sum()).backward();
  if (!is_finite) weight.mutable_grad().fill_(std::numeric_limits<float>::infinity());
  scaler.step(sgd);
  scaler.update();
}

TEST_F(StatefulObjects, KeepsAGradScaler) {
  optim::GradScaler saved({.init_scale = 1024, .growth_interval = 3});
  step(saved, false);
  step(saved, true);
  Snapshot(in_folder()).track(saved).save(1);

  optim::GradScaler resumed;
  ASSERT_TRUE(Snapshot(in_folder()).track(resumed).resume());
  EXPECT_EQ(resumed.get_scale(), 512);
  EXPECT_EQ(resumed.state_dict(), saved.state_dict());
  for (optim::GradScaler* each : {&saved, &resumed}) {
    step(*each, true);
    step(*each, true);
    EXPECT_EQ(each->get_scale(), 1024);  // the third finite step in a row
  }
}

TEST_F(StatefulObjects, KeepsAnAveragedModel) {
  using Averaged = optim::swa_utils::AveragedModel<test::Net>;
  const auto net = test::make_net();
  Averaged saved(*net, std::make_shared<test::Net>());
  saved.update_parameters(*net);
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& each : net->parameters()) each.add_(1);
  }
  saved.update_parameters(*net);
  Snapshot(in_folder()).track(net).track("ema", saved).save(1);

  const auto fresh = std::make_shared<test::Net>();
  Averaged resumed(*fresh, std::make_shared<test::Net>());
  ASSERT_TRUE(Snapshot(in_folder()).track(fresh).track("ema", resumed).resume());
  EXPECT_EQ(resumed.n_averaged.item<int64_t>(), 2);
  EXPECT_EQ(test::fingerprint(resumed), test::fingerprint(saved));
  EXPECT_NE(test::fingerprint(*resumed.module), test::fingerprint(*fresh));
}

TEST_F(StatefulObjects, PythonReadsTheStateOfAGradScaler) {
  optim::GradScaler scaler;
  Snapshot({.file = (folder_ / "snapshot.pt").string(), .hints = false}).track(scaler).save(1);
  const pickle::Value value = snapshot_files::open_tensor_file(snapshot_files::real_files(),
                                                               (folder_ / "snapshot.pt").string())
                                  .value()
                                  .value();
  const auto* state = value.find("SCALER_STATE")->get_if<pickle::Dict>();
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(*state->find("growth_interval"), pickle::Value(int64_t{2000}));
  EXPECT_EQ(*state->find("backoff_factor"), pickle::Value(0.5));
}

struct Average {
  StateDict state_dict() const { return {{"mean", mean}, {"count", count}, {"name", name}}; }
  void load_state_dict(const StateDict& state) {
    mean = std::get<at::Tensor>(state.at("mean"));
    count = std::get<int64_t>(state.at("count"));
    name = std::get<std::string>(state.at("name"));
  }
  at::Tensor mean = torch::zeros({2, 3});
  int64_t count = 0;
  std::string name;
};

struct Progress {
  nlohmann::json state_dict() const { return {{"best", best}}; }
  void load_state_dict(const nlohmann::json& state) { best = state.at("best"); }
  double best = 0;
};

struct Steps {
  std::optional<std::vector<size_t>> next(size_t) { return std::vector<size_t>{position++}; }
  size_t state() const { return position; }
  void load_state(size_t state) { position = state; }
  size_t position = 0;
};

TEST_F(StatefulObjects, KeepsClassesOfTheUser) {
  Average average{torch::randn({3, 2}).t(), 7, "validation"};
  Progress progress{0.25};
  Steps steps{11};
  Snapshot snapshot(in_folder());
  snapshot.track("average", average).track("progress", progress).track(steps);
  ASSERT_TRUE(snapshot.save(1));

  Average found;
  Progress found_progress;
  Steps found_steps;
  Snapshot another(in_folder());
  another.track("average", found).track("progress", found_progress).track("sampler", found_steps);
  ASSERT_TRUE(another.resume());
  EXPECT_TRUE(at::equal(found.mean, average.mean));
  EXPECT_EQ(found.count, 7);
  EXPECT_EQ(found.name, "validation");
  EXPECT_EQ(found_progress.best, 0.25);
  EXPECT_EQ(found_steps.position, 11U);
}

class HookTraining {
 public:
  explicit HookTraining(const SnapshotOptions& options, bool has_hook = true)
      : ddp_(net()), sgd_(ddp_.parameters(), 0.05), snapshot_(options) {
    if (has_hook) {
      ddp_.register_comm_hook(nn::parallel::power_sgd_hook({.start_power_sgd_iter = 2}));
    }
    snapshot_.track(ddp_).track(sgd_, ddp_);
  }
  void train(int64_t from, int64_t to) {
    for (int64_t step = from; step < to; ++step) {
      torch::manual_seed(static_cast<uint64_t>(step));
      const at::Tensor x = torch::randn({4, 24});
      ddp_.zero_grad();
      ddp_(x).pow(2).sum().backward();
      sgd_.step();
    }
  }
  Snapshot& snapshot() { return snapshot_; }
  std::string result() { return test::fingerprint(ddp_.module()); }

 private:
  static torch::nn::Sequential net() {
    torch::manual_seed(5);
    torch::nn::Sequential net;
    net->push_back(torch::nn::Linear(24, 32));
    net->push_back(torch::nn::Linear(32, 24));
    return net;
  }
  nn::parallel::DistributedDataParallel<torch::nn::SequentialImpl> ddp_;
  torch::optim::SGD sgd_;
  Snapshot snapshot_;
};

TEST_F(StatefulObjects, KeepsTheErrorFeedbackOfPowerSgd) {
  const auto group = dist::init_process_group_or_single({.backend = "gloo"});
  std::string expected;
  {
    HookTraining whole(in_folder());
    whole.train(0, 6);
    ASSERT_TRUE(whole.snapshot().save(6));
    whole.train(6, 9);
    expected = whole.result();
  }
  HookTraining resumed(in_folder());
  ASSERT_TRUE(resumed.snapshot().resume());
  resumed.train(6, 9);
  EXPECT_EQ(resumed.result(), expected);
}

TEST_F(StatefulObjects, AModuleWithoutAHookHasNoStateOfIt) {
  const auto group = dist::init_process_group_or_single({.backend = "gloo"});
  HookTraining(in_folder(), false).snapshot().save(1);
  const auto file = snapshot_files::open_tensor_file(snapshot_files::real_files(),
                                                     (folder_ / "step-1" / "optim.pt").string());
  EXPECT_EQ(file->value().find("model_hook"), nullptr);
  HookTraining hooked(in_folder());  // an older snapshot has none either
  EXPECT_TRUE(hooked.snapshot().resume());
}

TEST_F(StatefulObjects, HintsAtUntrackedScalersAndHooks) {
  const auto group = dist::init_process_group_or_single({.backend = "gloo"});
  optim::GradScaler scaler;
  const auto hook = nn::parallel::power_sgd_hook();
  auto net = test::make_net(0);
  SnapshotOptions options = in_folder();
  options.hints = true;
  CaptureStderr();
  Snapshot(options).track(*net).save(1);
  const std::string printed = GetCapturedStderr();
  EXPECT_THAT(printed, HasSubstr("the GradScaler"));
  EXPECT_THAT(printed, HasSubstr("the communication hook"));
  optim::GradScaler off({.enabled = false});
  CaptureStderr();
  Snapshot(options).track(*net).track(scaler).save(2);
  EXPECT_THAT(GetCapturedStderr(), Not(HasSubstr("the GradScaler")));
}

TEST_F(StatefulObjects, GoesBackBeforeASpoiltStep) {
  int64_t value = 0;
  Snapshot snapshot(in_folder());
  snapshot.track("value", value);
  for (const int64_t step : {10, 20, 30}) {
    value = step;
    ASSERT_TRUE(snapshot.save(step));
  }
  Snapshot again(in_folder());
  again.track("value", value);
  const Resumed from = again.resume({.before_step = 30});
  EXPECT_EQ(from.step, 20);
  EXPECT_EQ(value, 20);
  EXPECT_FALSE(again.resume({.before_step = 10}));
}

TEST_F(StatefulObjects, DoesNotResumeFromMemoryWhatIsMarkedAsBad) {
  int value = 0;
  Snapshot snapshot(in_folder());
  snapshot.track("value", value);
  for (const int64_t step : {10, 20}) {
    value = static_cast<int>(step);
    ASSERT_TRUE(snapshot.save(step));
  }
  ASSERT_EQ(snapshot.resume().source, SnapshotSource::InMemorySnapshot);
  ASSERT_TRUE(snapshot_files::mark_bad(snapshot_files::real_files(), folder_.string(), 20).status);
  EXPECT_EQ(snapshot.resume().step, 10);
  EXPECT_EQ(value, 10);
}

// What a training may spoil, with a NaN for each.
struct Spoilt : torch::nn::Module {
  at::Tensor weight = register_parameter("weight", torch::ones({4}));
  at::Tensor mean = register_buffer("mean", torch::zeros({4}));
  at::Tensor narrow = register_buffer("narrow", torch::zeros({4}, at::kFloat8_e4m3fn));
};

TEST_F(StatefulObjects, LeavesOutStatesWithANan) {
  SnapshotOptions options = in_folder();
  options.refuse_non_finite = true;
  Snapshot snapshot(options);
  Spoilt net;
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  snapshot.track(net).track(optimizer, net);
  net.weight.sum().backward();
  optimizer.step();
  ASSERT_TRUE(snapshot.save(1));
  const torch::NoGradGuard no_grad;
  const auto& state = static_cast<torch::optim::SGDParamState&>(
      *optimizer.state().at(net.weight.unsafeGetTensorImpl()));
  const std::vector<std::pair<std::string, at::Tensor>> cases{
      {"optimizer.state.0.momentum_buffer", state.momentum_buffer()},  // resume() makes another
      {"model.weight", net.weight},
      {"model.mean", net.mean},
      {"model.narrow", net.narrow}};
  for (const auto& [name, tensor] : cases) {
    const at::Tensor before = tensor.clone();
    tensor.copy_(torch::full({4}, std::numeric_limits<float>::quiet_NaN()));
    Snapshot again(options);
    again.track(net).track(optimizer, net);
    CaptureStderr();
    EXPECT_FALSE(again.save(2));
    EXPECT_FALSE(again.save_async(3));
    EXPECT_TRUE(again.wait());  // no save has failed
    EXPECT_EQ(GetCapturedStderr(), "cpprun: the snapshot of step 2 is left out: '" + name +
                                       "' has a NaN or an infinity; this message appears once\n");
    tensor.copy_(before);
    EXPECT_EQ(again.resume().step, 1);
  }
  EXPECT_TRUE(snapshot.save(4));
}

}  // namespace
}  // namespace cpprun

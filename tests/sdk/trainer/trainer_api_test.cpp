// The Trainer in a world of one: the steps, their order, and the overridable parts.
#include "cpprun/trainer/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <filesystem>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/optim/lr_schedulers.hpp"
#include "tests/sdk/trainer/toy_support.hpp"

namespace cpprun {
namespace {

using ::testing::ElementsAre;
using Net = torch::nn::LinearImpl;

// Records the calls of overridden methods.
template <data::Sampler S = data::DistributedSampler>
class Noting : public Trainer<Net, test::ToyBatches, S> {
 public:
  using Base = Trainer<Net, test::ToyBatches, S>;
  using Base::Base;
  std::vector<std::string> calls;
  int resumes_at = 0;

 protected:
  at::Tensor loss(const at::Tensor& output, const at::Tensor& targets) override {
    return torch::nn::functional::mse_loss(output, targets);
  }
  void run_epoch(int epoch) override {
    calls.push_back("epoch " + std::to_string(epoch));
    Base::run_epoch(epoch);
  }
  void end_epoch(int epoch) override { calls.push_back("end " + std::to_string(epoch)); }
  void save_snapshot(int epoch) override { calls.push_back("save " + std::to_string(epoch)); }
  void load_snapshot() override {
    calls.push_back("load");
    this->epochs_run_ = resumes_at;
  }
};

class TrainerApi : public ::testing::Test {
 protected:
  TrainerOptions quiet() const { return {.batch_size = 8, .save_every = 2, .verbose = false}; }

  dist::ProcessGroupGuard group_ = dist::init_process_group_or_single();
  std::shared_ptr<Net> net_ = test::toy_net();
  torch::optim::SGD sgd_{net_->parameters(), 0.01};
};

TEST_F(TrainerApi, StepsInTheTutorialsOrder) {
  Noting<> trainer(net_, test::toy_data(32), sgd_, quiet());
  trainer.train(3);
  EXPECT_THAT(trainer.calls, ElementsAre("load", "epoch 0", "end 0", "save 0", "epoch 1", "end 1",
                                         "epoch 2", "end 2", "save 2"));
  EXPECT_EQ(trainer.epochs_run(), 3);
  EXPECT_EQ(trainer.exit_code(), 0);
  trainer.train(4);  // continues without another load; the end has unsaved steps
  EXPECT_EQ(trainer.calls[9], "epoch 3");
  EXPECT_EQ(trainer.calls.back(), "save 3");
}

TEST_F(TrainerApi, ResumesFromTheSnapshot) {
  Noting<> trainer(net_, test::toy_data(32), sgd_, quiet());
  trainer.resumes_at = 2;
  trainer.train(3);
  EXPECT_THAT(trainer.calls, ElementsAre("load", "epoch 2", "end 2", "save 2"));
}

TEST_F(TrainerApi, PrintsTheTutorialsLine) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Noting<> trainer(net_, test::toy_data(70), sgd_, {.batch_size = 32, .save_every = 0});
  trainer.train(2);
  EXPECT_EQ(
      ::testing::internal::GetCapturedStdout(),
      "[GPU0] Epoch 0 | Batchsize: 32 | Steps: 3\n[GPU0] Epoch 1 | Batchsize: 32 | Steps: 3\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "effective batch size 32 (1 ranks x 32)\n");
}

TEST_F(TrainerApi, Learns) {
  TrainerOptions options = quiet();
  options.workers = 2;
  Noting<> trainer(net_, test::toy_data(512), sgd_, options);
  trainer.train(1);
  const double first = trainer.last_loss().item<double>();
  trainer.train(10);
  EXPECT_LT(trainer.last_loss().item<double>(), first / 10);
}

// Four accumulated batches of 8 equal one of 32; 5 batches in all, so that the last step of a
// training epoch has one.
TEST_F(TrainerApi, AccumulatedBatchesEqualOneLargeBatch) {
  const auto weights_after = [](TrainerOptions options) {
    const auto net = test::toy_net();
    torch::optim::SGD sgd(net->parameters(), 0.01);
    options.verbose = false;
    options.sampler.shuffle = false;
    Noting<> trainer(net, test::toy_data(40), sgd, options);
    trainer.train(2);
    return net->weight.detach().clone();
  };
  const at::Tensor small = weights_after({.batch_size = 8, .accumulate = 4});
  const at::Tensor large = weights_after({.batch_size = 32});
  EXPECT_TRUE(torch::allclose(small, large, 1e-5, 1e-7));
  EXPECT_FALSE(torch::allclose(small, weights_after({.batch_size = 8}), 1e-5, 1e-7));
}

TEST_F(TrainerApi, SchedulesAfterEpochsOrBatches) {
  optim::StepLR schedule(sgd_, {.step_size = 1, .gamma = 0.5});
  TrainerOptions options = quiet();
  options.scheduler = &schedule;
  Noting<>(net_, test::toy_data(32), sgd_, options).train(3);
  EXPECT_EQ(schedule.last_epoch(), 3);
  options.schedules_batches = true;
  Noting<>(net_, test::toy_data(32), sgd_, options).train(3);
  EXPECT_EQ(schedule.last_epoch(), 3 + 3 * 4);
}

TEST_F(TrainerApi, ClipsGradients) {
  TrainerOptions options = quiet();
  options.max_grad_norm = 0.0;
  const at::Tensor before = net_->weight.detach().clone();
  Noting<>(net_, test::toy_data(32), sgd_, options).train(1);
  EXPECT_TRUE(torch::equal(before, net_->weight));
}

// Only the first three samples, twice.
class OwnSampler {
 public:
  std::optional<std::vector<size_t>> next(size_t) {
    if (given_++ == 2) return std::nullopt;
    return std::vector<size_t>{0, 1, 2};
  }
  size_t size() const { return 6; }
  void set_epoch(int64_t) { given_ = 0; }
  int state() const { return given_; }

 private:
  int given_ = 0;
};

TEST_F(TrainerApi, AcceptsACustomSampler) {
  Noting<OwnSampler> trainer(net_, test::toy_data(32), std::make_shared<OwnSampler>(), sgd_,
                             {.batch_size = 3, .verbose = false});
  trainer.train(1);
  EXPECT_EQ(trainer.sampler().state(), 3);
}

// Its position cannot be loaded, so a save within an epoch would train samples twice.
TEST_F(TrainerApi, ASamplerWithoutLoadStateSavesBetweenEpochsOnly) {
  TrainerOptions options = quiet();
  options.save_when.every_steps = 1;
  EXPECT_THROW(
      Noting<OwnSampler>(net_, test::toy_data(32), std::make_shared<OwnSampler>(), sgd_, options),
      std::invalid_argument);
}

// All samples in order. `seen` collects the numbers of those it has given.
struct InOrder {
  std::optional<std::vector<size_t>> next(size_t batch_size) {
    std::vector<size_t> batch;
    while (batch.size() < batch_size && position < total) batch.push_back(position++);
    seen->insert(seen->end(), batch.begin(), batch.end());
    return batch;
  }
  size_t size() const { return total; }
  size_t remaining() const { return total - position; }
  void set_epoch(int64_t of) {
    if (std::exchange(epoch, of) != of) position = 0;
  }
  int64_t state() const { return static_cast<int64_t>(position); }
  void load_state(int64_t state) { position = static_cast<size_t>(state); }

  size_t total = 0, position = 0;
  int64_t epoch = 0;
  std::vector<size_t>* seen = nullptr;
};

// Saves after each batch; throws in the batch `ends_at`.
class Interrupted : public Trainer<Net, test::ToyBatches, InOrder> {
 public:
  using Trainer::Trainer;
  int ends_at = -1;

 protected:
  at::Tensor run_batch(const at::Tensor& source, const at::Tensor& targets) override {
    snapshot().wait();
    if (ends_at-- == 0) throw std::runtime_error("interrupted");
    return Trainer::run_batch(source, targets);
  }
  at::Tensor loss(const at::Tensor& output, const at::Tensor& targets) override {
    return torch::nn::functional::mse_loss(output, targets);
  }
};

TEST_F(TrainerApi, ContinuesACustomSamplerWithinAnEpoch) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("trainer_sampler_" + std::to_string(::getpid()));
  TrainerOptions options = quiet();
  options.save_when.every_steps = 1;
  options.snapshot_dir = folder.string();
  std::vector<size_t> seen;
  for (const int ends_at : {3, -1}) {
    seen.clear();
    Interrupted trainer(net_, test::toy_data(32),
                        std::make_shared<InOrder>(InOrder{.total = 32, .seen = &seen}), sgd_,
                        options);
    trainer.ends_at = ends_at;
    if (ends_at > 0) {
      EXPECT_THROW(trainer.train(1), std::runtime_error);
    } else {
      trainer.train(1);
    }
  }
  EXPECT_THAT(seen, ElementsAre(24, 25, 26, 27, 28, 29, 30, 31));  // three batches were trained
  std::filesystem::remove_all(folder);
}

// Without an agent the saves that are not for the disk are left out.
TEST_F(TrainerApi, WritesSomeOfTheSavesWithinAnEpochToDisk) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("trainer_disk_" + std::to_string(::getpid()));
  TrainerOptions options = quiet();
  options.save_when = {.every_steps = 1, .disk_every_steps = 4};
  options.snapshot_dir = folder.string();
  std::vector<size_t> seen;
  Interrupted trainer(net_, test::toy_data(64),
                      std::make_shared<InOrder>(InOrder{.total = 64, .seen = &seen}), sgd_,
                      options);
  trainer.ends_at = 7;
  EXPECT_THROW(trainer.train(1), std::runtime_error);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("step-1", "step-5"));
  std::filesystem::remove_all(folder);
}

// A sampler whose state was saved within a training epoch: training uses only the rest.
TEST_F(TrainerApi, ContinuesWithinATrainingEpoch) {
  Noting<> trainer(net_, test::toy_data(40), sgd_, quiet());
  trainer.sampler().load_state({.epoch = 1, .consumed = 24, .size = 40});
  trainer.resumes_at = 1;
  trainer.train(2);
  EXPECT_EQ(trainer.sampler().remaining(), 0U);
  EXPECT_EQ(trainer.sampler().state().consumed, 40);
  EXPECT_EQ(trainer.sampler().indices().size(), 16U);
}

TEST_F(TrainerApi, RejectsInvalidOptions) {
  EXPECT_THROW(Noting<>(net_, test::toy_data(4), sgd_, {.batch_size = 0}), std::invalid_argument);
  EXPECT_THROW(Noting<>(net_, test::toy_data(4), sgd_, {.accumulate = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace cpprun

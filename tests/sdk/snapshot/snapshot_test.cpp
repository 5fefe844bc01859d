// Snapshots in a world of one: saved and restored values, rejections, hints.
#include "cpprun/snapshot/snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/optim/lr_schedulers.hpp"
#include "cpprun/snapshot/state_dict.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "tests/sdk/snapshot/training_support.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class SnapshotAlone : public ::testing::Test {
 protected:
  SnapshotAlone() { fs::create_directories(folder_); }
  ~SnapshotAlone() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  SnapshotOptions in_folder() const { return {.dir = path("snapshots"), .hints = false}; }
  SnapshotOptions in_file() const { return {.file = path("snapshot.pt"), .hints = false}; }
  pickle::Value tree(const std::string& name) const {
    return snapshot_files::open_tensor_file(snapshot_files::real_files(), path(name))
        .value()
        .value();
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("snapshot_test_" + std::to_string(::getpid()) + "_" +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

struct Values {
  bool flag = true;
  int number = -7;
  int64_t large = (int64_t{1} << 60) + 1;
  double real = 0.1;
  std::string text = "größer";
  at::Tensor tensor = at::arange(6, at::kBFloat16).view({2, 3}).t();
  nlohmann::json json = {{"best", 0.25}, {"names", {"a", "b"}}};
  std::mt19937 engine{5};

  void tracked_by(Snapshot& snapshot) {
    snapshot.track("flag", flag).track("number", number).track("large", large);
    snapshot.track("real", real).track("text", text).track("tensor", tensor);
    snapshot.track("json", json);
    snapshot.track_state(
        "engine", [this] { return (std::ostringstream() << engine).str(); },
        [this](const std::string& state) { std::istringstream(state) >> engine; },
        {.is_per_rank = true});
  }
};

TEST_F(SnapshotAlone, KeepsValuesOfAllKinds) {
  for (const auto& options : {in_folder(), in_file()}) {
    Values saved;
    saved.engine.discard(3);
    Snapshot snapshot(options);
    saved.tracked_by(snapshot);
    ASSERT_TRUE(snapshot.save(12));

    Values found{false, 0, 0, 0, "", at::zeros({1}), {}, std::mt19937(9)};
    Snapshot another(options);
    found.tracked_by(another);
    const Resumed from = another.resume();
    EXPECT_EQ(from.source, SnapshotSource::Disk);
    EXPECT_EQ(from.step, 12);
    EXPECT_TRUE(fs::exists(from.path));
    EXPECT_EQ(found.flag, saved.flag);
    EXPECT_EQ(found.number, saved.number);
    EXPECT_EQ(found.large, saved.large);
    EXPECT_EQ(found.real, saved.real);
    EXPECT_EQ(found.text, saved.text);
    EXPECT_EQ(found.json, saved.json);
    EXPECT_EQ(found.engine, saved.engine);
    EXPECT_TRUE(at::equal(found.tensor, saved.tensor));
    EXPECT_EQ(found.tensor.scalar_type(), at::kBFloat16);
  }
}

// Python rejects the whole file for one undecodable text.
TEST_F(SnapshotAlone, SavesNonUtf8TextAsBytes) {
  const std::string saved("\xff\0\xe9", 3);
  std::string text = saved;
  Snapshot(in_file()).track("text", text).save(1);
  const pickle::Value value = tree("snapshot.pt");
  const pickle::Value* held = value.get_if<pickle::Dict>()->find("TEXT");
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(*held, pickle::Value(pickle::Bytes{saved}));
  text.clear();
  ASSERT_TRUE(Snapshot(in_file()).track("text", text).resume());
  EXPECT_EQ(text, saved);
}

TEST_F(SnapshotAlone, AnEmptyFolderHasNoSnapshot) {
  int value = 3;
  Snapshot snapshot(in_folder());
  snapshot.track("value", value);
  EXPECT_FALSE(snapshot.resume());
  EXPECT_EQ(value, 3);
}

TEST_F(SnapshotAlone, RejectsDuplicateEntries) {
  const auto net = test::make_net();
  int value = 0, other = 0;
  Snapshot snapshot(in_folder());
  snapshot.track(net).track("value", value);
  EXPECT_THROW(snapshot.track("again", net), std::invalid_argument);
  EXPECT_THROW(snapshot.track("value", other), std::invalid_argument);
  EXPECT_THROW(snapshot.track("step", other), std::invalid_argument);  // the name of its own entry
  EXPECT_THROW(Snapshot({.dir = "a", .file = "b"}), std::invalid_argument);
}

// Else each would replace the other's snapshots, and both would resume from the state of one.
TEST_F(SnapshotAlone, TwoOfAProgramDoNotShareAPlace) {
  for (const auto& options : {in_folder(), in_file()}) {
    const std::string place = options.file.empty() ? options.dir : options.file;
    int value = 0;
    Snapshot first(options), second(options), other({.dir = path("other"), .hints = false});
    for (Snapshot* each : {&first, &second, &other}) each->track("value", value);
    EXPECT_TRUE(first.save(1) && other.save(1) && first.save(2));
    EXPECT_TRUE(second.save(3) && other.save(2) && second.save(4));  // it takes the place over
    const auto text = HasSubstr("another Snapshot of this program saves into " + place + " too");
    EXPECT_THAT([&] { first.save(5); }, ThrowsMessage<std::invalid_argument>(text));
    EXPECT_THAT([&] { first.save_async(5); }, ThrowsMessage<std::invalid_argument>(text));
    EXPECT_THAT([&] { first.maybe_save(5, {.every_steps = 1}); },
                ThrowsMessage<std::invalid_argument>(text));
    EXPECT_EQ(second.resume().step, 4);
  }
}

TEST_F(SnapshotAlone, ARelativePathDoesNotFollowAChangeOfTheFolder) {
  const fs::path before = fs::current_path();
  fs::create_directories(folder_ / "elsewhere");
  for (SnapshotOptions options :
       {SnapshotOptions{.dir = "runs"}, SnapshotOptions{.file = "a.pt"}}) {
    options.hints = options.in_memory = false;
    fs::current_path(folder_);
    int value = 3;
    Snapshot snapshot(options);
    snapshot.track("value", value);
    EXPECT_TRUE(snapshot.save(1));
    fs::current_path(folder_ / "elsewhere");
    EXPECT_EQ(snapshot.resume().step, 1);
    EXPECT_TRUE(snapshot.save(2));
    EXPECT_EQ(fs::path(snapshot.last_path()).string().find(path("")), 0);
    EXPECT_TRUE(fs::exists(snapshot.last_path()));
  }
  fs::current_path(before);
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
}

TEST_F(SnapshotAlone, KeepsTheTutorialsKeys) {
  const auto net = test::make_net();
  const auto adam = test::make_optimizer("adamw", net->parameters());
  int epochs_run = 4;
  Snapshot snapshot(in_file());
  snapshot.track(net).track(*adam, net).track("epochs_run", epochs_run).track_rng();
  ASSERT_TRUE(snapshot.save(1));
  const pickle::Value value = tree("snapshot.pt");
  const auto* dict = value.get_if<pickle::Dict>();
  EXPECT_NE(dict->find("MODEL_STATE")->get_if<pickle::Dict>()->find("first.weight"), nullptr);
  EXPECT_EQ(*dict->find("EPOCHS_RUN")->get_if<int64_t>(), 4);
  EXPECT_NE(dict->find("OPTIMIZER_STATE")->get_if<pickle::Dict>()->find("param_groups"), nullptr);
  ASSERT_TRUE(snapshot.save(2));
  EXPECT_TRUE(fs::exists(path("snapshot.pt.prev")));
}

void step(test::Net& net, torch::optim::Optimizer& optimizer) {
  const test::Data data;
  const auto closure = [&] {
    optimizer.zero_grad();
    auto loss = torch::mse_loss(net.forward(data.inputs), data.targets);
    loss.backward();
    return loss;
  };
  optimizer.step(closure);
}

class SnapshotOptimizers : public SnapshotAlone,
                           public ::testing::WithParamInterface<const char*> {};

TEST_P(SnapshotOptimizers, ContinueExactly) {
  const auto net = test::make_net(0);
  const auto optimizer = test::make_optimizer(GetParam(), net->parameters());
  for (int i = 0; i < 3; ++i) step(*net, *optimizer);
  Snapshot snapshot(in_folder());
  snapshot.track(net).track(*optimizer, net);
  ASSERT_TRUE(snapshot.save(3));
  const auto again = test::make_net(0);
  const auto resumed = test::make_optimizer(GetParam(), again->parameters());
  Snapshot another(in_folder());
  another.track(again).track(*resumed, again);
  ASSERT_TRUE(another.resume());
  for (int i = 0; i < 3; ++i) {
    step(*net, *optimizer);
    step(*again, *resumed);
  }
  EXPECT_EQ(test::fingerprint(*net), test::fingerprint(*again));
}

INSTANTIATE_TEST_SUITE_P(All, SnapshotOptimizers,
                         ::testing::Values("sgd", "adam", "adamw", "adagrad", "rmsprop", "lbfgs"));

TEST_F(SnapshotAlone, NamesKeepMomentumWithItsParameter) {
  const auto net = test::make_net(0);
  const auto sgd = test::make_optimizer("sgd", net->parameters());
  step(*net, *sgd);
  Snapshot(in_folder()).track(net).track(*sgd, net).save(1);

  const auto more = test::make_net(0, true);
  const auto larger = test::make_optimizer("sgd", more->parameters());
  Snapshot another(in_folder());
  another.track("model", more, {.strict = false}).track(*larger, more);
  ASSERT_TRUE(another.resume());
  const auto momentum = [](torch::optim::Optimizer& of, const at::Tensor& parameter) {
    const auto found = of.state().find(parameter.unsafeGetTensorImpl());
    if (found == of.state().end()) return at::Tensor();
    return static_cast<torch::optim::SGDParamState&>(*found->second).momentum_buffer();
  };
  EXPECT_TRUE(at::equal(momentum(*larger, more->last->weight), momentum(*sgd, net->last->weight)));
  EXPECT_FALSE(momentum(*larger, more->more->weight).defined());

  Snapshot by_position(in_folder());
  by_position.track(*larger);
  EXPECT_THROW(by_position.resume(), std::runtime_error);  // it has more parameters
}

// Its vectors have the elements of all parameters, in their order.
TEST_F(SnapshotAlone, LbfgsNeedsTheSameParameters) {
  const auto net = test::make_net(0);
  const auto lbfgs = test::make_optimizer("lbfgs", net->parameters());
  step(*net, *lbfgs);
  Snapshot(in_folder()).track(net).track(*lbfgs, net).save(1);
  const auto refuses = [&](std::vector<at::Tensor> parameters, const test::Net& of) {
    const auto other = test::make_optimizer("lbfgs", std::move(parameters));
    Snapshot snapshot(in_folder());
    snapshot.track("optimizer", *other, of);
    EXPECT_THAT([&] { snapshot.resume(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("one state for all of them")));
    EXPECT_TRUE(other->state().empty());
  };
  std::vector<at::Tensor> reversed = net->parameters();
  std::ranges::reverse(reversed);
  refuses(reversed, *net);
  const auto more = test::make_net(0, true);
  refuses(more->parameters(), *more);
}

// A folder has the name of its module only if there are several.
TEST_F(SnapshotAlone, ASecondModuleOrOneLessIsResumed) {
  const auto net = test::make_net(0), grown = test::make_net(0);
  const auto sgd = test::make_optimizer("sgd", net->parameters());
  step(*net, *sgd);
  Snapshot(in_folder()).track("actor", net).track("optimizer", *sgd).save(1);

  const auto critic = std::make_shared<torch::nn::LinearImpl>(2, 1);
  const auto resumed = test::make_optimizer("sgd", grown->parameters());
  {
    Snapshot strict(in_folder());
    strict.track("actor", grown).track("critic", critic);
    EXPECT_THAT([&] { strict.resume(); },
                ThrowsMessage<std::runtime_error>(
                    AllOf(HasSubstr("no module 'critic'"), HasSubstr("{.strict = false}"))));
  }
  Snapshot two(in_folder());
  two.track("critic", critic, {.strict = false}).track("actor", grown).track("optimizer", *resumed);
  CaptureStderr();
  EXPECT_EQ(two.resume().step, 1);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("has nothing of: critic"));
  EXPECT_EQ(test::fingerprint(*grown), test::fingerprint(*net));
  EXPECT_EQ(resumed->state().size(), sgd->state().size());
  ASSERT_TRUE(two.save(2));

  const auto lone = std::make_shared<torch::nn::LinearImpl>(2, 1);
  Snapshot one(in_folder());
  one.track("critic", lone);
  EXPECT_EQ(one.resume().step, 2);
  EXPECT_TRUE(at::equal(lone->weight, critic->weight));
}

TEST_F(SnapshotAlone, AModuleWithoutANameIsTheOneCalledModelAmongEqualOnes) {
  const auto net = std::make_shared<torch::nn::LinearImpl>(2, 1);
  Snapshot(in_folder()).track(net).save(1);
  const auto policy = std::make_shared<torch::nn::LinearImpl>(2, 1);
  const auto target = std::make_shared<torch::nn::LinearImpl>(2, 1);
  Snapshot unclear(in_folder());
  unclear.track("target", target, {.strict = false}).track("policy", policy, {.strict = false});
  EXPECT_THAT([&] { unclear.resume(); },
              ThrowsMessage<std::runtime_error>(AllOf(
                  HasSubstr("'target' and 'policy' have the same tensors"), HasSubstr(".dir"))));
  Snapshot clear(in_folder());
  clear.track("target", target, {.strict = false}).track("model", policy);
  EXPECT_EQ(clear.resume().step, 1);
  EXPECT_TRUE(at::equal(policy->weight, net->weight));
  EXPECT_FALSE(at::equal(target->weight, net->weight));
}

TEST_F(SnapshotAlone, ReportsAMismatchAndChangesNothing) {
  const auto net = test::make_net();
  Snapshot(in_folder()).track(net).save(1);
  const auto more = test::make_net(0.3, true);
  const std::string before = test::fingerprint(*more);
  Snapshot another(in_folder());
  another.track(more);
  try {
    another.resume();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("missing: between.weight, between.bias"));
  }
  EXPECT_EQ(test::fingerprint(*more), before);
}

TEST_F(SnapshotAlone, FallsBackToTheEarlierFile) {
  int value = 1;
  {
    Snapshot snapshot(in_file());
    snapshot.track("value", value);
    snapshot.save(1);
    value = 2;
    snapshot.save(2);
  }
  fs::resize_file(path("snapshot.pt"), fs::file_size(path("snapshot.pt")) - 20);
  Snapshot another(in_file());
  another.track("value", value);
  CaptureStderr();
  EXPECT_EQ(another.resume().step, 1);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("fell back one to " + path("snapshot.pt.prev")));
  EXPECT_EQ(value, 1);
}

// Flips a bit that only a checksum detects.
void damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(100);
  const int byte = file.get();
  file.seekp(100);
  file.put(static_cast<char>(byte ^ 1));
}

TEST_F(SnapshotAlone, ADamagedLaterStepDoesNotRemoveNewSnapshots) {
  at::Tensor value = at::ones({64});
  SnapshotOptions options = in_folder();
  options.keep = 2;
  for (const int step : {140, 160}) {
    ASSERT_TRUE(Snapshot(options).track("value", value).save(step));
    damage(path("snapshots/step-" + std::to_string(step) + "/optim.pt"));
  }
  Snapshot anew(options);
  anew.track("value", value);
  CaptureStderr();
  EXPECT_FALSE(anew.resume());
  for (const int step : {20, 40, 60}) ASSERT_TRUE(anew.save(step));
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("the newest snapshot is of step 20 now; those of "
                                             "later steps are set aside"));
  const auto found = snapshot_files::scan(snapshot_files::real_files(), path("snapshots"));
  ASSERT_EQ(found->complete.size(), 2U);
  EXPECT_EQ(found->complete[0].step, 60);
  EXPECT_EQ(found->complete[1].step, 40);
  CaptureStderr();
  EXPECT_EQ(Snapshot(options).track("value", value).resume().step, 60);
  EXPECT_EQ(GetCapturedStderr(), "");  // no snapshot to fall back to
}

TEST_F(SnapshotAlone, HintsOnceAtAForgottenEntry) {
  const auto net = test::make_net();
  const auto sgd = test::make_optimizer("sgd", net->parameters());
  optim::StepLR schedule(*sgd, {.step_size = 1});
  data::DistributedSampler sampler(4);
  SnapshotOptions options = in_folder();
  options.hints = true;
  Snapshot forgetful(options);
  forgetful.track(net);
  CaptureStderr();
  forgetful.save(1);
  forgetful.save(2);
  EXPECT_EQ(GetCapturedStderr(),
            "cpprun: hint: the Snapshot does not track the optimizer, the scheduler, the sampler, "
            "the random numbers that the model draws (track_rng); a resumed run will not continue "
            "exactly (.hints = false silences this)\n");
  Snapshot whole(options);
  whole.track(net).track(*sgd, net).track(schedule).track(sampler).track_rng();
  CaptureStderr();
  whole.save(3);
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST_F(SnapshotAlone, RestoresSharedAndStridedTensors) {
  at::Tensor whole = at::arange(24, at::kDouble).view({4, 6});
  at::Tensor column = whole.select(1, 2), rows = whole.slice(0, 1, 3), scalar = at::tensor(5);
  Snapshot snapshot(in_folder());
  snapshot.track("whole", whole).track("column", column).track("rows", rows);
  snapshot.track("scalar", scalar);
  ASSERT_TRUE(snapshot.save(1));
  at::Tensor a, b, c, d;
  Snapshot another(in_folder());
  another.track("whole", a).track("column", b).track("rows", c).track("scalar", d);
  ASSERT_TRUE(another.resume());
  EXPECT_TRUE(at::equal(a, whole) && at::equal(b, column) && at::equal(c, rows));
  EXPECT_TRUE(at::equal(d, scalar));
}

// Loads into the model's memory, wherever it is: no second copy on any device.
class SnapshotMapLocation : public SnapshotAlone {};
TEST_F(SnapshotMapLocation, LoadsIntoTheModelsMemory) {
  const auto net = test::make_net();
  Snapshot(in_folder()).track(net).save(1);
  const auto other = std::make_shared<test::Net>();
  std::vector<void*> before, after;
  for (const auto& each : other->parameters()) before.push_back(each.data_ptr());
  Snapshot another(in_folder());
  another.track(other);
  ASSERT_TRUE(another.resume());
  for (const auto& each : other->parameters()) after.push_back(each.data_ptr());
  EXPECT_EQ(before, after);
  EXPECT_EQ(test::fingerprint(*other), test::fingerprint(*net));
}

TEST_F(SnapshotAlone, SavesByStepsAndByTime) {
  int64_t value = 0;
  Snapshot snapshot(in_folder());
  snapshot.track("value", value);
  int saves = 0;
  for (int64_t step = 1; step <= 10; ++step) {
    saves += snapshot.maybe_save(step, {.every_steps = 5});
    snapshot.wait();
  }
  EXPECT_EQ(saves, 2);
  EXPECT_FALSE(snapshot.maybe_save(11, {.every = std::chrono::hours(1)}));
  EXPECT_TRUE(snapshot.maybe_save(12, {.every = std::chrono::milliseconds(1)}));
}

TEST_F(SnapshotAlone, SavesAtTheFirstCallFromADueStepOn) {
  int64_t value = 0;
  Snapshot snapshot(in_folder()), other({.dir = path("others"), .hints = false});
  snapshot.track("value", value);
  other.track("value", value);
  const auto saved = [](Snapshot& by, const std::vector<int64_t>& steps) {
    std::vector<int64_t> all;
    for (int64_t step : steps) {
      if (by.maybe_save(step, {.every_steps = 20}) && by.wait()) all.push_back(step);
    }
    return all;
  };
  EXPECT_THAT(saved(snapshot, {0, 7, 14, 21, 28, 35, 42, 49, 56}), ElementsAre(21, 42));
  EXPECT_EQ(snapshot.resume().step, 42);
  EXPECT_THAT(saved(snapshot, {45, 55, 63, 63, 80}), ElementsAre(63, 80));
  EXPECT_EQ(other.resume().step, 0);
  EXPECT_THAT(saved(other, {25, 30, 45}), ElementsAre(25, 45));
}

TEST_F(SnapshotAlone, NamesAFolderThatCannotBeListed) {
  std::ofstream(path("snapshots")) << "a file";
  int64_t value = 0;
  Snapshot snapshot(in_folder());
  snapshot.track("value", value);
  CaptureStderr();
  EXPECT_EQ(snapshot.resume().source, SnapshotSource::None);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("/snapshots can't be used (can't list "));
}

// Without an agent memory does not serve, so that only the saves for the disk are made.
TEST_F(SnapshotAlone, RefusesAScheduleWithoutASave) {
  Snapshot snapshot(in_folder());
  for (const SaveWhen& when :
       {SaveWhen{.disk_every_steps = 5}, SaveWhen{.disk_every = 1min}, SaveWhen{.every_steps = -1},
        SaveWhen{.every_steps = 1, .disk_every = -1ms}}) {
    EXPECT_THROW(snapshot.maybe_save(1, when), std::invalid_argument);
  }
  EXPECT_FALSE(snapshot.maybe_save(1, {.every_steps = 0}));
}

TEST_F(SnapshotAlone, WritesSomeSavesToDisk) {
  int64_t value = 0;
  SnapshotOptions options = in_folder();
  options.keep = 9;
  Snapshot snapshot(options);
  snapshot.track("value", value);
  const auto saved = [&](int64_t first, int64_t last, const SaveWhen& when) {
    std::vector<int64_t> steps;
    for (int64_t step = first; step <= last; ++step) {
      if (snapshot.maybe_save(step, when)) steps.push_back(step);
      EXPECT_TRUE(snapshot.wait());
    }
    return steps;
  };
  const SaveWhen by_steps{.every_steps = 2, .disk_every_steps = 5};
  EXPECT_THAT(saved(1, 15, by_steps), ElementsAre(2, 8, 14));
  const SaveWhen by_time{.every_steps = 1, .disk_every = std::chrono::hours(1)};
  EXPECT_THAT(saved(16, 19, by_time), ElementsAre());
  const SaveWhen either{.every_steps = 1, .disk_every_steps = 99, .disk_every = 1ms};
  std::this_thread::sleep_for(2ms);
  EXPECT_THAT(saved(20, 20, either), ElementsAre(20));
  EXPECT_TRUE(snapshot.save(21));
  EXPECT_TRUE(snapshot.save_async(22));
  EXPECT_TRUE(snapshot.wait());
  EXPECT_EQ(snapshot.resume({.before_step = 15}).step, 14);
  EXPECT_THAT(saved(15, 22, by_steps), ElementsAre(16, 22));
}

TEST_F(SnapshotAlone, AWriteThatHasFailedIsTriedAgainWithTheNextSave) {
  int64_t value = 0;
  std::ofstream(path("snapshots")) << "a file where a folder belongs";
  Snapshot snapshot(in_folder());
  snapshot.track("value", value);
  const SaveWhen when{.every_steps = 1, .disk_every_steps = 100};
  CaptureStderr();
  EXPECT_TRUE(snapshot.maybe_save(1, when));
  EXPECT_FALSE(snapshot.wait());
  fs::remove(path("snapshots"));
  EXPECT_TRUE(snapshot.maybe_save(2, when));
  EXPECT_TRUE(snapshot.wait());
  EXPECT_FALSE(snapshot.maybe_save(3, when));
  const std::string printed = GetCapturedStderr();
  EXPECT_THAT(printed, HasSubstr("the snapshot of step 1 was not written"));
  EXPECT_THAT(printed, HasSubstr("snapshots are written again, from step 2 on"));
}

// Waits for a draft with bytes in `folder`: its writer holds the lock by then.
snapshot_files::LockState lock_of_draft(const fs::path& folder, const std::atomic<bool>& is_over) {
  while (!is_over) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::error_code gone;
      const auto bytes = fs::file_size(entry.path(), gone);
      if (entry.path().extension() != ".tmp" || gone || bytes == 0) continue;
      const auto state = snapshot_files::real_files().lock_state(entry.path());
      if (state != snapshot_files::LockState::Unknown) return state;
    }
  }
  return snapshot_files::LockState::Unknown;
}

TEST_F(SnapshotAlone, LocksAStateDictWhileWriting) {
  const torch::nn::Linear large(4096, 4096);  // 64 MiB: long enough to be seen
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    save_state_dict(*large, path("model.pt"));
    is_over = true;
  });
  EXPECT_EQ(lock_of_draft(folder_, is_over), snapshot_files::LockState::Held);
  writer.join();
}

TEST_F(SnapshotAlone, StateDictsTakeWrappedNames) {
  const auto net = test::make_net();
  save_state_dict(*net, path("model.pt"));
  torch::manual_seed(77);
  test::Net other(0.3);
  ASSERT_NE(test::fingerprint(other), test::fingerprint(*net));
  load_state_dict(other, path("model.pt"));
  EXPECT_EQ(test::fingerprint(other), test::fingerprint(*net));
  EXPECT_THROW(load_state_dict(other, path("none.pt")), std::runtime_error);
}

}  // namespace
}  // namespace cpprun

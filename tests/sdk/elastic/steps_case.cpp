// elastic_steps WORD=VALUE...: a training by cpprun::ElasticSteps, whose loop stays in place.
//
// The words of elastic_share, and of fault: updated (SIGKILL after the optimizer's step, before the
// commit), body (leaves commit() out). late: where the others wait in a collective meanwhile: in
// (the body, after the optimizer's step of all) or now (behind commit.now()). hook=fp16: gradients
// are averaged in half precision, by a communication hook. snapshot=yes: saves every 5 steps, and
// resumes. Prints as elastic_train does; "call of process" in each round.
#include <unistd.h>

#include <optional>
#include <utility>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/elastic/elastic_steps.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/worker/main.hpp"
#include "tests/sdk/elastic/shared_training_support.hpp"
#include "tests/sdk/elastic/training_support.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;
using test::ElasticWords;
using test::print_line;

class Loop {
 public:
  explicit Loop(const ElasticWords& words)
      : words_(words), training_(words), steps_(stop(), training_.state(), options()) {
    if (!saves()) return;
    steps_.on_round([this](ElasticRound&) { make_snapshot(); }, [this] { snapshot_.reset(); });
  }

  void run() {
    auto ddp = steps_.data_parallel(training_.net());
    if (words_.text("hook") == "fp16") {
      ddp.register_comm_hook(nn::parallel::fp16_compress_hook());
    }
    for (const int64_t step : steps_) {
      begin_of_round(step);
      if (step == 10 && words_.is_faulty("body")) continue;
      steps_.commit([&](ElasticCommit& commit) { body(ddp, commit, step); });
    }
    print_line("parameters " + training_.hash());
    if (snapshot_) snapshot_->wait();
  }

 private:
  bool saves() const { return words_.text("snapshot") == "yes"; }
  int64_t stop() const { return words_.number("steps", 30); }

  ElasticStepsOptions options() {
    ElasticStepsOptions options{.group = words_.group(), .min_world = 2};
    if (saves()) options.resume = [this](ElasticRound&) { return snapshot_->resume().step; };
    return options;
  }

  void make_snapshot() {
    snapshot_.emplace(SnapshotOptions{.dir = "snapshots"});
    training_.track(*snapshot_);
  }

  void begin_of_round(int64_t step) {
    const ElasticRound& round = steps_.round();
    if (std::exchange(seen_, round.number()) == round.number()) return;
    print_line("call of process " + std::to_string(::getpid()) + " in round " +
               std::to_string(round.number()));
    print_line("from " + std::to_string(step));
  }

  template <class Model>
  void body(Model& ddp, ElasticCommit& commit, int64_t step) {
    const std::string late = words_.text("late");
    training_.step(ddp, step, training_.next_batch(), [&] {
      if (late == "in") sum();  // the end of it shows that all have updated their parameters
      if (late != "now") words_.die_if("updated", step);
      if (late == "in") sum();
    });
    if (late == "now") {
      commit.now();
      words_.die_if("updated", step);
      sum();
    }
    words_.sleep();
    const ElasticRound& round = steps_.round();
    if (round.rank() == 0) test::print_step(step + 1, round.number());
    if (!snapshot_) return;
    commit.now();
    snapshot_->maybe_save(step + 1, {.every_steps = 5});
  }

  static void sum() { dist::all_reduce(torch::ones({1}, dist::local_device())); }

  const ElasticWords& words_;
  test::SharedTraining training_;
  ElasticSteps steps_;
  std::optional<Snapshot> snapshot_;
  int64_t seen_ = -1;
};

}  // namespace

SDK_CASE(elastic_steps) {
  const ElasticWords words(args);
  return cpprun::main(0, nullptr, [&](Args) { Loop(words).run(); });
}

// Two loops at a time, and a second walk through one.
SDK_CASE(elastic_steps_twice) {
  const ElasticWords words(args);
  return cpprun::main(0, nullptr, [&](Args) {
    test::SharedTraining training(words);
    ElasticSteps steps(2, training.state(), {.group = {.backend = "gloo"}});
    const auto refused = [](const char* what, const std::function<void()>& call) {
      try {
        call();
      } catch (const std::logic_error& error) {
        print_line(std::string(what) + " is refused: " + error.what());
      }
    };
    refused("a second loop", [&] { ElasticSteps(2, training.state()); });
    for ([[maybe_unused]] const int64_t step : steps) {
      steps.commit([] {});
      refused("a second commit", [&] { steps.commit([] {}); });
    }
    refused("a second walk", [&] { steps.begin(); });
  });
}

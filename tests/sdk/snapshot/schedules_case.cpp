// snapshot_schedules FILE: continues the schedulers that twins/schedules_file.py saved, and prints
// their rates. The milestones differ here: those of the file count.
#include <cmath>
#include <cstdio>

#include "cpprun/optim/lr_schedulers.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "tests/sdk/snapshot/training_support.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;
using Schedule = std::shared_ptr<optim::LRScheduler>;

Schedule make_schedule(const std::string& name, torch::optim::Optimizer& optimizer) {
  using namespace optim;
  if (name == "multi") {
    return std::make_shared<MultiStepLR>(optimizer, MultiStepLROptions{.milestones = {3}});
  }
  if (name == "lambda") {
    return std::make_shared<LambdaLR>(optimizer, [](int64_t step) { return std::pow(0.9, step); });
  }
  if (name == "cycle") {
    return std::make_shared<OneCycleLR>(optimizer,
                                        OneCycleLROptions{.max_lr = 0.3, .total_steps = 20});
  }
  const auto warm_up =
      std::make_shared<LinearLR>(optimizer, LinearLROptions{.start_factor = 0.1, .total_iters = 6});
  const auto decay = std::make_shared<ExponentialLR>(optimizer, ExponentialLROptions{.gamma = 0.8});
  return std::make_shared<SequentialLR>(optimizer, std::vector<Schedule>{warm_up, decay},
                                        std::vector<int64_t>{6});
}

}  // namespace

SDK_CASE(snapshot_schedules) {
  for (const std::string name : {"multi", "lambda", "cycle", "sequence"}) {
    const auto optimizer = test::make_optimizer("sgd", {torch::ones({1}, torch::requires_grad())});
    const Schedule schedule = make_schedule(name, *optimizer);
    Snapshot snapshot({.file = args.at(0), .hints = false});
    snapshot.track(name, *schedule).track(name + "_optimizer", *optimizer);
    if (!snapshot.resume()) return 1;
    std::printf("%s", name.c_str());
    for (int i = 0; i < 10; ++i) {
      optimizer->step();
      schedule->step();
      std::printf(" %.9g", schedule->get_last_lr()[0]);
    }
    std::printf("\n");
  }
  return 0;
}

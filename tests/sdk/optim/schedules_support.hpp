// An optimizer and a schedule from JSON, in the form of twins/schedules.py: {"optimizer": "sgd",
// "lrs": [0.1, 0.01], "schedule": {"kind": "StepLR", "step_size": 3}}.
#pragma once

#include <torch/optim.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cpprun/optim/lr_schedulers.hpp"

namespace cpprun::test {

using Json = nlohmann::json;

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Json& setting);
std::shared_ptr<optim::LRScheduler> make_schedule(torch::optim::Optimizer& optimizer,
                                                  const Json& schedule);

// An optimizer with its schedule, and the numbers that the schedule has set.
class Scheduled {
 public:
  explicit Scheduled(const Json& setting)
      : setting_(setting),
        optimizer_(make_optimizer(setting)),
        schedule_(make_schedule(*optimizer_, setting.at("schedule"))) {}

  // Step `at`, counted from 0; with "halve_at" in the setting the test itself changes the rates.
  void step(int at);
  std::string line() const;  // rates and momenta, 17 digits each
  optim::LRScheduler& schedule() { return *schedule_; }
  torch::optim::Optimizer& optimizer() { return *optimizer_; }

 private:
  Json setting_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::shared_ptr<optim::LRScheduler> schedule_;
};

}  // namespace cpprun::test

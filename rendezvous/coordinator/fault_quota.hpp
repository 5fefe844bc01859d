// FaultQuota: how often each fault of a job's fault plan has struck, so that none comes more often
// than the plan says, on whichever node and after whichever restart.
//
// A core. The plan is the agents' own; here it is numbers. Soft state: agents bring what they have
// heard when they register.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/limits/faults.hpp"

namespace cpprun {

class FaultQuota {
 public:
  // The count with this strike included, or nothing: it may not strike (again).
  std::optional<int64_t> claim(int64_t fault, int64_t times) {
    if (fault < 0 || fault >= static_cast<int64_t>(limits::kFaultsPerPlan)) return std::nullopt;
    const auto index = static_cast<size_t>(fault);
    if (counts_.size() <= index) counts_.resize(index + 1);
    if (counts_[index] >= std::min(times, limits::kFaultInjections)) return std::nullopt;
    return ++counts_[index];
  }

  // What an agent has heard; it may know of more than this coordinator does.
  void learn(const std::vector<int64_t>& heard) {
    if (counts_.size() < heard.size()) counts_.resize(heard.size());
    for (size_t i = 0; i < heard.size(); ++i) counts_[i] = std::max(counts_[i], heard[i]);
  }

  const std::vector<int64_t>& counts() const { return counts_; }

 private:
  std::vector<int64_t> counts_;  // by the fault's number
};

}  // namespace cpprun

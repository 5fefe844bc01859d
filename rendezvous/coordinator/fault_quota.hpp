// FaultQuota: how often each fault of a job's fault plan was injected, so that no fault comes more
// often than the plan allows, on whichever node and after whichever restart.
//
// A core: no I/O. The agents know the plan; here its faults are numbers. The counts outlive this
// coordinator: agents bring theirs when they register.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/limits/faults.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class FaultQuota {
 public:
  // Counts one injection. The count with it, or nothing: the fault may not be injected (again).
  std::optional<int64_t> claim(int64_t fault, int64_t times) {
    if (fault < 0 || fault >= static_cast<int64_t>(limits::kFaultsPerPlan)) return std::nullopt;
    const auto index = static_cast<size_t>(fault);
    if (counts_.size() <= index) counts_.resize(index + 1);
    if (counts_[index] >= std::min(times, limits::kFaultInjections)) return std::nullopt;
    return ++counts_[index];
  }

  // claim(), as a message.
  control::FaultPermit permit(const control::FaultPermitRequest& request) {
    const std::optional<int64_t> count = claim(request.fault, request.times);
    control::FaultPermit permit{request.fault, count.value_or(0), count.has_value()};
    permit.where = request.where;
    permit.step = request.step;
    permit.epoch = request.epoch;
    return permit;
  }

  // The other nodes learn of a permitted fault before it is injected: it may kill this very
  // process, and the next coordinator must count it.
  void answer(const Node& asker, const control::FaultPermitRequest& request, const NodeTable& nodes,
              Effects& effects) {
    control::FaultPermit answer = permit(request);
    for (const auto& [incarnation, node] : nodes) {
      if (answer.is_permitted && incarnation != asker.id.incarnation) send(node, answer, effects);
    }
    answer.is_answer = true;
    send(asker, answer, effects);
  }

  // The counts of an agent, which may be higher than the ones here.
  void learn(const std::vector<int64_t>& counts) {
    if (counts_.size() < counts.size()) counts_.resize(counts.size());
    for (size_t i = 0; i < counts.size(); ++i) counts_[i] = std::max(counts_[i], counts[i]);
  }

  const std::vector<int64_t>& counts() const { return counts_; }

 private:
  std::vector<int64_t> counts_;  // by the fault's number
};

}  // namespace cpprun

// Schedule: when the faults of a plan strike that wait for a time and not for a place in the
// program, seen from one node.
//
// A core: no clock, no I/O. Every node has the same one from the same seed and counts from its own
// first round; whether a fault may still be injected is for the coordinator to say.
#pragma once

#include <vector>

#include "common/faults/plan.hpp"

namespace cpprun::faults {

// Where this node stands in a round.
struct Placement {
  int64_t round = 0, attempt = 0;
  int64_t node = 0, nodes = 1;  // group rank
  int64_t base_rank = 0, workers = 1, ranks = 1;
};

struct DueFault {
  size_t fault = 0;
  std::optional<int64_t> rank;  // the worker it hits; nothing: the agent
};

class Schedule {
 public:
  // `plan` is drawn.
  explicit Schedule(const Plan& plan);
  Schedule(const Schedule&) = delete;

  // All workers of a round run; none do.
  void on_started(Instant now, const Placement& here);
  void on_stopped() { here_.reset(); }

  Instant next_deadline() const;
  // What has come due and hits this node. What hits another one is passed over: its own agent has
  // the same schedule.
  std::vector<DueFault> take_due(Instant now);

 private:
  struct Timed {
    size_t index;
    const Fault* fault;
    Instant at = Instant::never();
    int64_t injected = 0;  // or passed over
  };
  void set(Timed& timed, Instant now) const;
  std::optional<DueFault> target(const Timed& timed) const;

  const Plan plan_;
  std::vector<Timed> timed_;
  std::optional<Placement> here_;  // while workers run
  bool has_begun_ = false;
};

}  // namespace cpprun::faults

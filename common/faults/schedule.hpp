// Schedule: one node's schedule of the faults that are injected at a time, not at a position in the
// program.
//
// A pure core: no clock, no I/O. Every node computes the same schedule from the same seed, relative
// to its own first round. The coordinator's fault quota decides whether a fault may be injected.
#pragma once

#include <vector>

#include "common/faults/plan.hpp"

namespace cpprun::faults {

// This node's position in a round.
struct Placement {
  int64_t round = 0, attempt = 0;
  int64_t node = 0, nodes = 1;  // group rank
  int64_t base_rank = 0, workers = 1, ranks = 1;
};

struct DueFault {
  size_t fault = 0;
  std::optional<int64_t> rank;  // the target worker; nullopt: the agent
};

class Schedule {
 public:
  // Requires: `plan` comes from drawn().
  explicit Schedule(const Plan& plan);
  Schedule(const Schedule&) = delete;

  // All workers of a round run; no worker runs.
  void on_started(Instant now, const Placement& here);
  void on_stopped() { here_.reset(); }

  Instant next_deadline() const;
  // Removes and returns the due faults with a target on this node. Faults of other nodes are
  // skipped: their agents have the same schedule.
  std::vector<DueFault> take_due(Instant now);

 private:
  struct Timed {
    size_t index;
    const Fault* fault;
    Instant at = Instant::never();
    int64_t injected = 0;  // or skipped
  };
  void set(Timed& timed, Instant now) const;
  std::optional<DueFault> target(const Timed& timed) const;

  const Plan plan_;
  std::vector<Timed> timed_;
  std::optional<Placement> here_;  // while workers run
  bool has_begun_ = false;
};

}  // namespace cpprun::faults

#include "tests/support/sim/swarm/swarm_impostors.hpp"

namespace cpprun::sim {

void ImpostorFaults::plan() {
  if (mean_ == Duration{}) return;
  cluster_.in(prng_.until_event(mean_), [this] {
    if (cluster_.now() >= end_) return;
    const auto count = static_cast<int64_t>(cluster_.nodes().size());
    if (count > 0) {
      cluster_.impersonate(*cluster_.nodes()[static_cast<size_t>(prng_.below(count))],
                           static_cast<ImpostorKind>(kinds_.below(4)));
    }
    plan();
  });
}

}  // namespace cpprun::sim

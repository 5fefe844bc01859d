// SavingTime: for as long as it lives, training waits for a save. The agent counts that time as
// saving (docs/how-to/goodput.md). For the sources of the SDK only.
#pragma once

#include "common/machine/clock.hpp"
#include "cpprun/worker/internal/own_agent.hpp"

namespace cpprun::worker {

class SavingTime {
 public:
  SavingTime() = default;
  ~SavingTime() { add_saved((read_clock(CLOCK_MONOTONIC) - began_).count()); }
  SavingTime(const SavingTime&) = delete;
  SavingTime& operator=(const SavingTime&) = delete;

 private:
  const Duration began_ = read_clock(CLOCK_MONOTONIC);
};

}  // namespace cpprun::worker

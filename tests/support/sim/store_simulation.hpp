// StoreSimulation: the real store behind its real protocol, with clients that connect, wait,
// cancel, hang, lose their connection and die. Every wait is answered exactly once, when its last
// key is present, in the order of the waits; no client gets an unrequested reply; and after the
// faults no client waits for a present key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cpprun::sim {

struct StoreResult {
  std::vector<std::string> broken;
  uint64_t hash = 0;
  int64_t waits = 0;  // started waits
};

StoreResult run_store_simulation(uint64_t seed);

}  // namespace cpprun::sim

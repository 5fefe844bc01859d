// StoreSimulation: the real store behind its real protocol, with clients that come, wait, cancel,
// hang, are cut off and die. Every wait is answered exactly once, when its last key has come, in
// the order of the waits; nobody hears what it has not asked for; and when the faults are over,
// nobody waits for a key that is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cpprun::sim {

struct StoreResult {
  std::vector<std::string> broken;
  uint64_t hash = 0;
  int64_t waits = 0;  // that were begun
};

StoreResult run_store_simulation(uint64_t seed);

}  // namespace cpprun::sim

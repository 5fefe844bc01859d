// Goodput: a long simulation of a large job whose nodes fail at a given rate, and the fraction of
// time in which all workers of a full world ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time.hpp"

namespace cpprun::sim {

struct GoodputOptions {
  uint64_t seed = 1;
  int64_t nodes = 1000;
  int64_t spares = 4;
  Duration lasts = std::chrono::hours(24);
  // Of one node; `goodput.cpp` divides it among the causes.
  Duration node_fails_each = std::chrono::hours(7900);
  Duration repair_takes = std::chrono::minutes(10);  // until another agent starts in its place
  Duration stop_takes = std::chrono::seconds(1);     // of a worker, from SIGTERM
  Duration lease = std::chrono::seconds(5);
  Duration heartbeat = std::chrono::seconds(1);
};

struct GoodputResult {
  double full = 0;      // fractions of the time: all workers of max nodes ran
  double smaller = 0;   // all workers of a smaller world ran
  double stopping = 0;  // a failure was still undetected, or workers were stopping
  double waiting = 0;   // no worker ran
  int64_t rounds = 0;
  int64_t faults = 0;
  uint64_t events = 0;
  std::vector<std::string> broken;
  std::string text() const;
};

GoodputResult run_goodput(const GoodputOptions& options);

}  // namespace cpprun::sim

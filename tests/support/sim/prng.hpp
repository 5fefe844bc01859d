// Prng: random numbers from a seed, the same with every compiler and library.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::sim {

class Prng {
 public:
  explicit Prng(uint64_t seed) : state_(seed) {}

  // splitmix64.
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  double share() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // in [0, 1)
  bool chance(double of_one) { return share() < of_one; }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t least, int64_t most) { return least + below(most - least + 1); }
  Duration between(Duration least, Duration most) {
    return Duration(between(least.count(), most.count()));
  }
  Duration up_to(Duration most) { return between(Duration{}, most); }
  // Waiting time until an event that happens once in `mean` on average.
  Duration until_event(Duration mean) {
    return seconds(-std::log(1.0 - share()) * to_seconds(mean));
  }
  // An independent stream: drawing from it does not change this one.
  Prng child(uint64_t name) const {
    Prng made(state_ ^ (name * 0xD6E8FEB86659FD93U));
    made.next();
    return made;
  }

 private:
  uint64_t state_;
};

}  // namespace cpprun::sim

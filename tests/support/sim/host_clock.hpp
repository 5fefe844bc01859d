// HostClock: the clock of one host. Clocks of two hosts are not comparable, and their rates differ
// by at most 2 %, as the protocol allows (R6).
#pragma once

#include <cmath>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::sim {

struct HostClock {
  int64_t drift_ppm = 0;  // -20,000 ... 20,000: how much faster than true time
  Duration offset{};

  Instant local(Instant truth) const {
    int64_t ns = truth.nanoseconds();
    int64_t drifted = ns / 1'000'000 * drift_ppm + ns % 1'000'000 * drift_ppm / 1'000'000;
    return Instant::from_nanoseconds(ns + drifted) + offset;
  }
  // The first instant at which the host's clock shows `at` or more.
  Instant truth(Instant at) const {
    if (at.is_never()) return at;
    double rate = 1.0 + static_cast<double>(drift_ppm) * 1e-6;
    double guess = static_cast<double>((at - offset).nanoseconds()) / rate;
    Instant found = Instant::from_nanoseconds(std::llround(guess) - 2);
    while (local(found) < at) found = found + Duration(1);
    return found;
  }
};

}  // namespace cpprun::sim

// FaultKind: a kind of fault that a swarm draws, and the text of a plan.
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include "common/time.hpp"

namespace cpprun::sim {

template <typename Rates>
struct FaultKind {
  const char* name;
  Duration Rates::*mean;  // mean time between two of them; zero: there are none
  double is_on;           // probability
};

// `format` is of a name and a number.
inline void append(std::string& text, const char* format, const char* name, double value) {
  std::array<char, 96> line{};
  std::snprintf(line.data(), line.size(), format, name, value);
  text += line.data();
}

// The kinds with a mean above zero.
template <typename Rates, size_t kCount>
void append_means(std::string& text, const std::array<FaultKind<Rates>, kCount>& kinds,
                  const Rates& rates) {
  for (const FaultKind<Rates>& kind : kinds) {
    const Duration mean = rates.*kind.mean;
    if (mean > Duration{}) append(text, " %s=%.2fs", kind.name, to_seconds(mean));
  }
}

}  // namespace cpprun::sim

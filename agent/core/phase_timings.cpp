#include "agent/core/phase_timings.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace cpprun::agent {
namespace {

std::string milliseconds(Duration duration) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", to_seconds(duration) * 1e3);
  return text.data();
}

}  // namespace

void PhaseTimings::begin(Instant at) {
  is_open_ = true;
  last_ = at;
  all_.clear();
}

// Points of several threads may come out of order.
void PhaseTimings::reach(const char* name, Instant at) {
  if (!is_open_) return;
  all_.push_back({name, std::max(Duration{}, at - last_)});
  last_ = std::max(last_, at);
}

Duration PhaseTimings::total() const {
  Duration sum{};
  for (const Phase& phase : all_) sum += phase.took;
  return sum;
}

std::string timings_text(const std::string& what, const PhaseTimings& phases) {
  std::string text = what + " " + milliseconds(phases.total()) + " ms";
  const char* before = ": ";
  for (const Phase& phase : phases.all()) {
    std::string name = phase.name;
    std::ranges::replace(name, '_', ' ');
    text += before + name + " " + milliseconds(phase.took);
    before = ", ";
  }
  return text;
}

}  // namespace cpprun::agent

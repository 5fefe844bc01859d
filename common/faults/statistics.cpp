#include "common/faults/statistics.hpp"

#include <algorithm>
#include <cstdio>

namespace cpprun::faults {

void Statistics::add(const Summary& run) {
  for (const Summary::OneInjection& injected : run.injections) {
    Kind& kind = kinds_[injected.what];
    ++kind.injections;
    if (injected.recovery_s) kind.recoveries.push_back(*injected.recovery_s);
    kind.lost_steps += injected.lost_steps.value_or(0);
    kind.lost_epochs += injected.lost_epochs.value_or(0);
  }
}

std::string Statistics::table() const {
  char line[256];
  std::snprintf(line, sizeof line, "%-17s %8s %10s %9s %9s %9s %11s %12s\n", "fault", "injected",
                "recovered", "p50 s", "p95 s", "max s", "lost steps", "lost epochs");
  std::string text = line;
  for (const auto& [name, kind] : kinds_) {
    std::snprintf(line, sizeof line, "%-17.17s %8lld %10zu %9.3f %9.3f %9.3f %11lld %12lld\n",
                  name.c_str(), static_cast<long long>(kind.injections), kind.recoveries.size(),
                  percentile(kind.recoveries, 50), percentile(kind.recoveries, 95),
                  percentile(kind.recoveries, 100), static_cast<long long>(kind.lost_steps),
                  static_cast<long long>(kind.lost_epochs));
    text += line;
  }
  return text;
}

double percentile(std::vector<double> values, int percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t rank = (values.size() * static_cast<size_t>(percent) + 99) / 100;
  return values[std::max<size_t>(rank, 1) - 1];
}

}  // namespace cpprun::faults

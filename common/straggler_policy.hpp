// StragglerPolicy: --stragglers, what happens to a node with a slow rank.
#pragma once

#include <cstdint>

namespace cpprun {

enum class StragglerPolicy : int64_t { Report, Drain, Exclude };

constexpr const char* name_of(StragglerPolicy policy) {
  switch (policy) {
    case StragglerPolicy::Report: return "report";
    case StragglerPolicy::Drain: return "drain";
    case StragglerPolicy::Exclude: return "exclude";
  }
  return "unknown";
}

}  // namespace cpprun

// HangTimes: the times by which the hang detector learns its limits, of all rounds of a node.
#pragma once

#include <map>
#include <string>

#include "common/time.hpp"

namespace cpprun {

struct HangTimes {
  std::map<std::string, Duration> phases{};    // the longest gap between heartbeats, by phase
  std::map<std::string, Duration> sections{};  // the longest time in a section, by its name

  bool operator==(const HangTimes&) const = default;
};

}  // namespace cpprun

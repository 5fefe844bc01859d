// SectionLimits: how long a worker may stay in each section that its program has named
// (cpprun_worker.section, worker::Section).
//
// A limit of the program's own counts as it is. Else the limit is learned: a multiple of the
// longest time that any worker of this node has needed for the section, in all rounds, also in
// those of earlier jobs that the daemon knows of (--state-dir). Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/time.hpp"
#include "common/worker_observation.hpp"

namespace cpprun::agent {

class SectionLimits {
 public:
  void learn(const std::vector<SectionTimes>& sections);
  void learn(const std::string& section, Duration longest);
  // By name.
  const std::map<std::string, Duration>& longest() const { return longest_; }
  // `least`: no learned limit is shorter. `unknown`: while the section has ended nowhere.
  Duration limit(const SectionTimes& section, Duration least, Duration unknown) const;
  // "its limit is 40.0 s; the longest so far took 8.0 s"
  std::string limit_text(const SectionTimes& section, Duration limit) const;

 private:
  std::map<std::string, Duration> longest_;
};

}  // namespace cpprun::agent

// Statistics: recovery times and lost work of many runs of a plan, per kind of fault. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/faults/fault_report_text.hpp"

namespace cpprun::faults {

class Statistics {
 public:
  void add(const Summary& run);

  // A heading, and a line per kind: injections, recoveries with p50, p95 and maximum, lost steps
  // and epochs.
  std::string table() const;

 private:
  struct Kind {
    int64_t injections = 0;
    std::vector<double> recoveries;  // seconds
    int64_t lost_steps = 0, lost_epochs = 0;
  };
  std::map<std::string, Kind> kinds_;
};

// The smallest of `values` that at least `percent` of them do not exceed; 0 if there are none.
double percentile(std::vector<double> values, int percent);

}  // namespace cpprun::faults

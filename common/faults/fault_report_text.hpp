// An account as text: for people, as JUnit's XML for build servers, as JSON for cpprunctl chaos.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "common/faults/fault_report.hpp"

namespace cpprun::faults {

// The lines for the console, with a newline each.
std::string report_text(const FaultReport& report, const std::vector<ExpectationResult>& results);

// One testcase for each failure summary. `seconds`: of the whole run.
std::string junit(const FaultReport& report, const std::vector<ExpectationResult>& results,
                  double seconds);

// What cpprunctl chaos needs of one run.
struct Summary {
  struct OneInjection {
    std::string what;  // the word of the plan
    std::optional<double> recovery_s;
    std::optional<int64_t> lost_steps, lost_epochs;
  };
  bool is_held = false;
  std::string hash;  // of the final file; empty: none is asked for, or it can't be read
  std::vector<OneInjection> injections;
  std::vector<std::string> failed;  // failure summaries that did not hold
};
Summary summarize(const FaultReport& report, const std::vector<ExpectationResult>& results,
                  const std::string& hash);
std::string encode(const Summary& summary);
// Error (BadValue): it is no such JSON.
Result<Summary> parse_summary(std::string_view json);

}  // namespace cpprun::faults

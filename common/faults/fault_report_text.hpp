// A FaultReport as text: for people, as JUnit XML for build servers, as JSON for cpprunctl chaos.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "common/faults/fault_report.hpp"

namespace cpprun::faults {

// Lines for the console, each with a newline.
std::string report_text(const FaultReport& report, const std::vector<ExpectationResult>& results);

// One testcase per result. `seconds`: duration of the whole run.
std::string junit(const FaultReport& report, const std::vector<ExpectationResult>& results,
                  double seconds);

// The data of one run that cpprunctl chaos uses.
struct Summary {
  struct OneInjection {
    std::string what;  // name_of(FaultKind)
    std::optional<double> recovery_s;
    std::optional<int64_t> lost_steps, lost_epochs;
  };
  bool is_held = false;
  std::string hash;  // of the final file; empty: the plan has none, or the file cannot be read
  std::vector<OneInjection> injections;
  std::vector<std::string> failed;  // "name: text" of the failed checks
};
Summary summarize(const FaultReport& report, const std::vector<ExpectationResult>& results,
                  const std::string& hash);
std::string encode(const Summary& summary);
// Error (BadValue) if `json` does not have this format.
Result<Summary> parse_summary(std::string_view json);

}  // namespace cpprun::faults

// An account as text: for people, as JUnit's XML for build servers, as JSON for cpprunctl chaos.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "common/faults/account.hpp"

namespace cpprun::faults {

// The lines for the console, with a newline each.
std::string account_text(const Account& account, const std::vector<Verdict>& verdicts);

// One testcase for each verdict. `seconds`: of the whole run.
std::string junit(const Account& account, const std::vector<Verdict>& verdicts, double seconds);

// What cpprunctl chaos needs of one run.
struct Summary {
  struct OneStrike {
    std::string what;  // the word of the plan
    std::optional<double> recovery_s;
    std::optional<int64_t> lost_steps, lost_epochs;
  };
  bool is_held = false;
  std::string hash;  // of the final file; empty: none is asked for, or it can't be read
  std::vector<OneStrike> strikes;
  std::vector<std::string> failed;  // verdicts that did not hold
};
Summary summarize(const Account& account, const std::vector<Verdict>& verdicts,
                  const std::string& hash);
std::string encode(const Summary& summary);
// Error (BadValue): it is no such JSON.
Result<Summary> parse_summary(std::string_view json);

}  // namespace cpprun::faults

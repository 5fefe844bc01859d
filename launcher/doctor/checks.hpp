// Turns facts about a machine into findings with a cure each. Pure; the table of checks is in
// checks.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/doctor/facts.hpp"

namespace cpprun::doctor {

enum class Level {
  Good,     // checked, nothing found
  Note,     // worth knowing
  Warning,  // jobs run, but something will be slow, or some of them fail
  Problem,  // jobs fail
};

struct Finding {
  Level level = Level::Good;
  std::string text;          // what was found, with the number or name that was read
  std::string cure{};        // what to type or change; "" for Good
  std::string_view check{};  // the name of the check, one word
};

// One per check, in the order of the table.
std::vector<Finding> run_checks(const Facts& facts);

// The warnings and problems of the quick checks, which precede each start of a job. A
// CUDA_VISIBLE_DEVICES that names GPUs on a machine without any is no finding here: CPU jobs do
// that on purpose.
std::vector<Finding> preflight_findings(Facts facts);

// Whether none of them makes jobs fail.
bool is_well(const std::vector<Finding>& findings);

// "ok", "note", "warning", "problem".
std::string_view name(Level level);

}  // namespace cpprun::doctor

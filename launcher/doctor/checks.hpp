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
  std::string_view check;  // its name, one word
  Level level = Level::Good;
  std::string text;  // what was found, with the number or name that was read
  std::string cure;  // what to type or change; "" for Good
};

// One per check, in the order of the table.
std::vector<Finding> run_checks(const Facts& facts);

// "ok", "note", "warning", "problem".
std::string_view name(Level level);

}  // namespace cpprun::doctor

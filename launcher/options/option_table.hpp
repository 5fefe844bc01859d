// The table of all options that may precede the script: torchrun's flags (2.11 to 2.15) and
// cpprun's own.
//
// The tokenizer, help, completion scripts and the page of flags read it; a new flag is a new row
// here and a field of ParsedOptions. The rules about values are in the files with resolve_*().
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launcher/options/parsed_options.hpp"

namespace cpprun {

enum class OptionKind {
  Question,  // prints a text and exits: --help, --version
  Flag,      // no value; its environment variable is an integer, 0 is off
  Int,       // a whole number as Python's int() reads it
  Float,
  Text,
};

// Where an option's value goes; nowhere for a Question.
using OptionField = std::variant<std::monostate, bool ParsedOptions::*, int64_t ParsedOptions::*,
                                 std::optional<int64_t> ParsedOptions::*, double ParsedOptions::*,
                                 std::string ParsedOptions::*>;

enum class Treatment { Full, NoEffect, Refused };

struct OptionDetails {
  char letter = '\0';  // 'r' for -r
  // "spawn fork forkserver": all accepted values. A variable's value is not checked, as under
  // torchrun.
  std::string_view choices{};
  bool is_value_optional = false;  // "--name" or "--name=word"
  bool has_variable = true;        // PET_<NAME> sets it too
  Treatment treatment = Treatment::Full;
};

struct OptionRow {
  std::string_view name;    // with dashes: "nproc-per-node"
  OptionField field;        // its type is the kind of the option
  std::string_view value;   // placeholder of the value in help: "N|MIN:MAX"
  std::string_view since;   // first torch release that has it; empty: cpprun's own
  std::string_view help;    // one sentence or two
  std::string_view note{};  // for the flags page: the difference from torchrun; may be empty
  OptionDetails details{};

  OptionKind kind() const;
  bool is_own() const { return since.empty(); }
  bool takes_value() const;
};

std::span<const OptionRow> option_table();

// An option that -h explains, with a text for one line.
struct CommonOption {
  std::string_view name;
  std::string_view help;
};
std::span<const CommonOption> common_options();

// By its exact dashed name; nullptr if unknown.
const OptionRow* find_option(std::string_view dashed_name);

// The heading in help above this option, the first of its group; "" for the others.
std::string_view heading_before(const OptionRow& row);

std::string dashed(std::string_view name);       // "nproc_per_node" -> "nproc-per-node"
std::string underscored(std::string_view name);  // the inverse
inline constexpr std::string_view kVariablePrefix = "PET_";
std::string variable_name(const OptionRow& row);  // "PET_NPROC_PER_NODE"
std::vector<std::string> choice_values(const OptionRow& row);

}  // namespace cpprun

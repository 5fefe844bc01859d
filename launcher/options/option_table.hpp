// The one table of everything that may stand before the script: torchrun's flags (2.11 to 2.15) and
// our own.
//
// Tokeniser, help, completion scripts and docs/flags.md all read it; a new flag is a new row here
// and a field of ParsedOptions. It holds no rules about values: those stand in the resolve_* files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

enum class OptionKind {
  Flag,            // no value; by variable an integer, 0 is off
  Int,             // a whole number as Python's int() reads it
  Float,           //
  Text,            //
  Choice,          // one word of `choices`; a variable's word is not checked, as under torchrun
  OptionalChoice,  // "--name" or "--name=word"
  Question,        // shows a text and ends: --help, --version
};

enum class Treatment { Full, NoEffect, Refused };

struct OptionRow {
  std::string_view name;  // with dashes: "nproc-per-node"
  char letter = '\0';     // 'r' for -r
  OptionKind kind = OptionKind::Text;
  std::string_view value = {};    // what help calls the value: "N|MIN:MAX"
  std::string_view choices = {};  // "spawn fork forkserver"
  bool has_variable = true;       // PET_<NAME> stands in for it
  std::string_view group = {};    // heading in help
  std::string_view since = {};    // first torch release that has it; empty: cpprun's own
  Treatment treatment = Treatment::Full;
  std::string_view help = {};  // one sentence or two
  std::string_view note = {};  // docs/flags.md: what differs from torchrun; may be empty

  bool is_own() const { return since.empty(); }
  bool takes_value() const;
};

std::span<const OptionRow> option_table();

// By exact dashed name; nullptr if there is none.
const OptionRow* find_option(std::string_view dashed_name);

std::string dashed(std::string_view name);        // "nproc_per_node" -> "nproc-per-node"
std::string underscored(std::string_view name);   // the other way round
std::string variable_name(const OptionRow& row);  // "PET_NPROC_PER_NODE"
std::vector<std::string> choice_words(const OptionRow& row);

}  // namespace cpprun

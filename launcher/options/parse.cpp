// The only translation unit that includes CLI11. CLI11 does not read the command line, because it
// differs from argparse: it does not accept unique prefixes, takes "[a]" for a list and 010 for
// eight. The tokenizer does that.
#include "launcher/options/parse.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <set>

#include "common/text_style.hpp"
#include "launcher/options/option_table.hpp"

namespace cpprun {
namespace {

constexpr size_t kWidth = 80;
constexpr std::string_view kHelpIndent = "        ";

std::string cli_names(const OptionRow& row) {
  std::string names;
  if (row.details.letter != '\0') names = std::string("-") + row.details.letter + ",";
  names += "--" + std::string(row.name);
  std::string other = underscored(row.name);
  if (other != row.name) names += ",--" + other;
  return names;
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "usage: cpprun [options] script [arguments of the script]\n\n"
           "Starts N workers of a training program on this node, watches them, and\n"
           "restarts them all when one fails. Options can be abbreviated (--nproc=2), and\n"
           "variables can set them (PET_NPROC_PER_NODE). Arguments after the script belong\n"
           "to the script; ${local_rank} in them is the number of the worker.\n\n"
           "  cpprun --nproc-per-node=2 train.py --epochs 3\n"
           "  cpprun --nproc-per-node=gpu --max-restarts=3 train.py\n"
           "  cpprun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d \\\n"
           "         --rdzv-endpoint=node0:29400 train.py       (the same on each node)\n\n"
           "cpprunctl shows running jobs, and why a job failed.\n";
  }

  std::string make_group(std::string group, bool,
                         std::vector<const CLI::Option*> options) const override {
    std::string out = (group == heading_before(option_table().front()) ? "\n" : "") + group + ":\n";
    for (const CLI::Option* option : options) out += make_option(option, false);
    return out;
  }

  std::string make_option(const CLI::Option* option, bool) const override {
    std::string line = "  " + option->get_name(false, true);
    size_t comma = 0;
    while ((comma = line.find(',', comma)) != std::string::npos) line.insert(++comma, " ");
    if (!option->get_option_text().empty()) line += " " + option->get_option_text();
    return line + "\n" + std::string(kHelpIndent) +
           indented(option->get_description(), kHelpIndent.size(), kWidth) + "\n";
  }
};

// Registers rows of the table with CLI11, bound to one ParsedOptions. Each row costs some
// microseconds at every start, so a launch registers only the options that were given.
class CommandLine {
 public:
  // `home`: the user's home folder; "": it is not known.
  CommandLine(ParsedOptions& options, std::string_view home) : options_(options), home_(home) {
    app_.set_help_flag();
    app_.formatter(std::make_shared<HelpFormatter>());
  }

  // `group`: the heading above it in help.
  void know(const OptionRow& row, const std::string& group = "") {
    if (!known_.insert(&row).second) return;
    std::visit([&](auto field) { add(row, field)->group(group); }, row.field);
  }

  void take(const Token& token) {
    know(*token.option);
    app_.get_option("--" + std::string(token.option->name))->add_result(value_of(token));
  }

  void convert() {
    for (CLI::Option* option : app_.get_options({})) {
      if (!option->results().empty()) option->run_callback();
    }
  }

  std::string help() const { return app_.help(); }

 private:
  // Shells expand a tilde at the beginning of an argument only, not in --log-dir=~/logs.
  std::string value_of(const Token& token) const {
    const bool is_path = token.option->value == "DIR" || token.option->value == "FILE";
    const bool is_in_home = token.value == "~" || token.value.starts_with("~/");
    if (!is_path || !is_in_home || home_.empty()) return token.value;
    return home_ + token.value.substr(1);
  }

  CLI::Option* add(const OptionRow& row, std::monostate) {
    const std::string help(row.help);
    return app_.add_flag(cli_names(row), help);
  }
  template <class Value>
  CLI::Option* add(const OptionRow& row, Value ParsedOptions::*field) {
    const std::string value(row.value);
    return app_.add_option(cli_names(row), options_.*field, std::string(row.help))
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->option_text(row.details.is_value_optional ? "[=" + value + "]" : value);
  }

  ParsedOptions& options_;
  const std::string home_;
  std::set<const OptionRow*> known_;
  CLI::App app_;
};

}  // namespace

std::string ParsedOptions::shown(std::string_view name, std::string_view value) const {
  auto found = spellings.find(name);
  std::string spelling = found == spellings.end() ? "--" + std::string(name) : found->second;
  return spelling + (spelling.size() == 2 ? " " : "=") + std::string(value);
}

Result<ParsedOptions> parse_tokens(const TokenList& tokens, std::string_view home) {
  ParsedOptions options;
  try {
    CommandLine line(options, home);
    for (const Token& token : tokens.options) {
      line.take(token);
      options.spellings[token.option->name] = token.spelling;
    }
    line.convert();
  } catch (const CLI::Error& error) {
    return usage_error(error.what());
  }
  if (!tokens.program.empty()) {
    options.script = tokens.program.front();
    options.script_arguments.assign(tokens.program.begin() + 1, tokens.program.end());
  }
  return options;
}

std::string help_text() {
  ParsedOptions unused;
  CommandLine line(unused, "");
  std::string group;
  for (const OptionRow& row : option_table()) {
    if (const std::string_view heading = heading_before(row); !heading.empty()) group = heading;
    line.know(row, group);
  }
  return line.help();
}

}  // namespace cpprun

#include "launcher/cpprunctl/command_line/parse.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/exit_code.hpp"
#include "common/log/log.hpp"
#include "common/result.hpp"
#include "common/text.hpp"
#include "launcher/cpprunctl/command_line/command.hpp"
#include "launcher/cpprunctl/command_line/usage_text.hpp"

namespace cpprun::ctl {
namespace {

// Suggests a command for a misspelt one; CLI11 only reports that a command is missing.
Status check_command(const CLI::App& app, const std::string& name) {
  if (name.starts_with('-')) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::ranges::find(names, name) != names.end()) return {};
  const std::string near = nearest_command(name, names);
  const std::string hint =
      near.empty() ? "the commands are " + text::join(names, ", ") : "did you mean '" + near + "'?";
  return Error{ErrorKind::Usage, "unknown command '" + name + "'\nhint: " + hint};
}

// The command, and the one after it, as in `snapshot ls`.
Status check_commands(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (Status known = check_command(app, arguments[0]); !known) return known;
  if (arguments[0].starts_with('-') || arguments.size() == 1) return {};
  const CLI::App* group = app.get_subcommand(arguments[0]);
  return group->get_subcommands({}).empty() ? Status{} : check_command(*group, arguments[1]);
}

// `help COMMAND` is `COMMAND --help`.
std::vector<std::string> without_help_command(std::vector<std::string> arguments) {
  if (arguments[0] != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

// The command whose parsing has failed, as in "snapshot ls", and its options.
std::pair<std::string, std::vector<std::string>> parsed_command(const CLI::App& app) {
  const CLI::App* at = &app;
  std::vector<std::string> names;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    names.push_back(at->get_name());
  }
  std::vector<std::string> options;
  for (const CLI::Option* option : at->get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  return {text::join(names, " "), options};
}

}  // namespace

std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments) {
  if (arguments.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kUsageError;
  }
  arguments = without_help_command(std::move(arguments));
  if (Status known = check_commands(app, arguments); !known) return exit_code_of(known);
  try {
    std::ranges::reverse(arguments);  // CLI11 reads from the back
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      const auto& [command, options] = parsed_command(app);
      log::failure(usage_text(error.what(), command, options));
      return kUsageError;
    }
    return app.exit(error) == 0 ? kSuccess : kUsageError;
  }
  return std::nullopt;
}

}  // namespace cpprun::ctl

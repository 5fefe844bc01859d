#include "launcher/cpprunctl/command_line/completion_command.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/exit_code.hpp"
#include "launcher/cpprunctl/command_line/completion_script.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun::ctl {
namespace {

// All commands with their options. `before`: the names of the commands above them.
std::vector<CommandHelp> commands_of(const CLI::App& app, const std::string& before = "") {
  std::vector<CommandHelp> all;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandHelp help{before + command->get_name(), command->get_description(), {}};
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) help.options.push_back("--" + name);
      for (const std::string& name : option->get_snames()) help.options.push_back("-" + name);
    }
    const std::vector<CommandHelp> below = commands_of(*command, help.name + " ");
    if (below.empty()) all.push_back(std::move(help));
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

}  // namespace

void add_completion(CLI::App& app, RunCommand& run) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand(
      "completion", "Print a script that completes commands and options in a shell");
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&run, &app, shell] {
    run = [&app, shell] {
      print_unchanged(completion_script(*shell, commands_of(app)));
      return kSuccess;
    };
  });
}

}  // namespace cpprun::ctl

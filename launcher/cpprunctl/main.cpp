// cpprunctl: the tool for operators.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "common/log/log.hpp"
#include "common/machine/signal_mask.hpp"
#include "common/machine/terminal_color.hpp"
#include "common/version.hpp"
#include "launcher/cpprunctl/command_line/completion_command.hpp"
#include "launcher/cpprunctl/command_line/help_formatter.hpp"
#include "launcher/cpprunctl/command_line/job_commands.hpp"
#include "launcher/cpprunctl/command_line/parse.hpp"
#include "launcher/cpprunctl/command_line/server_commands.hpp"
#include "launcher/cpprunctl/command_line/snapshot_commands.hpp"
#include "launcher/cpprunctl/command_line/tool_commands.hpp"
#include "launcher/report/text_table.hpp"

namespace {

// --color, before the command or after it. Not for commands whose arguments are another program's.
void add_color(CLI::App& app, std::string& color) {
  app.add_option("--color", color, "colours: auto (on terminals, without NO_COLOR), always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  for (CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    if (name != "explain" && name != "chaos" && name != "slurm") command->fallthrough();
  }
}

void configure_output(const std::string& color) {
  cpprun::ctl::set_color(cpprun::color_mode(color));
  cpprun::log::set_color(cpprun::color_mode(color));
  if (const char* level = std::getenv("LOGLEVEL")) cpprun::log::set_level(level);
}

}  // namespace

int main(int argc, char** argv) {
  cpprun::unblock_signals();
  cpprun::ctl::RunCommand run;
  CLI::App app("Operate cpprun jobs and servers.", "cpprunctl");
  app.require_subcommand(1);
  app.set_version_flag("--version", "cpprunctl " + cpprun::version());
  cpprun::ctl::set_help_formatter(app);
  cpprun::ctl::add_job_commands(app, run);
  cpprun::ctl::add_tool_commands(app, run);
  cpprun::ctl::add_snapshot_commands(app, run);
  cpprun::ctl::add_server_commands(app, run);
  cpprun::ctl::add_completion(app, run);
  cpprun::ctl::group_commands(app);
  std::string color = "auto";
  add_color(app, color);
  if (const std::optional<int> code = cpprun::ctl::parse(app, {argv + 1, argv + argc})) {
    return *code;
  }
  configure_output(color);
  return run();
}

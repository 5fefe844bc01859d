#include "launcher/cpprunctl/command_line/help_formatter.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cpprun::ctl {
namespace {

// "N" where CLI11 has "INT:NONNEGATIVE=10".
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { label("SUBCOMMAND", "COMMAND"); }

  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    if (option->get_type_size() == 0 || type.empty()) return "";
    const bool is_number = type.starts_with("INT") || type.starts_with("UINT");
    std::string text = is_number ? " N" : type.starts_with("FLOAT") ? " NUMBER" : " TEXT";
    const std::string without = option->get_default_str();
    if (!without.empty()) text += " (" + without + ")";
    return text;
  }
};

}  // namespace

void set_help_formatter(CLI::App& app) { app.formatter(std::make_shared<HelpFormatter>()); }

void group_commands(CLI::App& app) {
  const std::pair<const char*, std::vector<const char*>> groups[] = {
      {"Look at running jobs",
       {"ps", "status", "nodes", "top", "pid", "logs", "stacks", "events", "goodput"}},
      {"Change a running job",
       {"signal", "restart", "drain", "scale", "exclude", "readmit", "stop"}},
      {"Before a job and after it", {"doctor", "explain", "slurm", "report", "snapshot", "chaos"}},
      {"Servers and shells", {"serve", "rendezvous-client", "install-as", "completion"}}};
  for (const auto& [group, names] : groups) {
    for (const char* name : names) app.get_subcommand(name)->group(group);
  }
  app.footer(
      "cpprunctl COMMAND --help describes one command. cpprunctl finds the running jobs of this "
      "machine without an address.");
}

}  // namespace cpprun::ctl

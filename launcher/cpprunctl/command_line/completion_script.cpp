#include "launcher/cpprunctl/command_line/completion_script.hpp"

#include "common/check.hpp"
#include "common/text.hpp"

namespace cpprun::ctl {
namespace {

// The first names of the commands, without duplicates, in order.
std::vector<std::string> first_names(const std::vector<CommandHelp>& commands) {
  std::vector<std::string> names;
  for (const CommandHelp& command : commands) {
    std::string name = command.name.substr(0, command.name.find(' '));
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> second_names(const std::vector<CommandHelp>& commands,
                                      const std::string& first) {
  std::vector<std::string> names;
  for (const CommandHelp& command : commands) {
    if (command.name.starts_with(first + " "))
      names.push_back(command.name.substr(first.size() + 1));
  }
  return names;
}

std::string bash_script(const std::vector<CommandHelp>& commands) {
  std::string cases;
  for (const std::string& first : first_names(commands)) {
    const std::string second = text::join(second_names(commands, first), " ");
    if (!second.empty()) cases += "    '" + first + " ') words='" + second + "' ;;\n";
  }
  for (const CommandHelp& command : commands) {
    cases +=
        "    '" + command.name + " '*) options='" + text::join(command.options, " ") + "' ;;\n";
  }
  return "_cpprunctl() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} words='' options=''\n"
         "  local before=\"${COMP_WORDS[*]:1:$((COMP_CWORD-1))} \"\n"
         "  case \"$before\" in\n"
         "    ' ') words='" +
         text::join(first_names(commands), " ") + "' ;;\n" + cases +
         "  esac\n"
         "  [[ $cur == -* ]] && words=$options\n"
         "  COMPREPLY=()\n"
         "  [[ -n $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "}\n"
         "complete -o default -F _cpprunctl cpprunctl\n";
}

std::string fish_text(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string fish_script(const std::vector<CommandHelp>& commands) {
  const std::string front = "complete -c cpprunctl -n '__fish_";
  std::string script = "# cpprunctl completion for fish: cpprunctl completion fish | source\n";
  for (const CommandHelp& command : commands) {
    const size_t blank = command.name.find(' ');
    const std::string first = command.name.substr(0, blank);
    const bool is_pair = blank != std::string::npos;
    const std::string last = is_pair ? command.name.substr(blank + 1) : first;
    script += front + (is_pair ? "seen_subcommand_from " + first : "use_subcommand") + "' -a " +
              last + " -d '" + fish_text(command.help) + "'\n";
    for (const std::string& option : command.options) {
      const bool is_long = option.starts_with("--");
      script += front + "seen_subcommand_from " + last + "' " + (is_long ? "-l " : "-s ") +
                option.substr(is_long ? 2 : 1) + "\n";
    }
  }
  return script;
}

}  // namespace

std::string completion_script(std::string_view shell, const std::vector<CommandHelp>& commands) {
  if (shell == "fish") return fish_script(commands);
  if (shell == "zsh") {
    return "#compdef cpprunctl\n# cpprunctl completion for zsh: source <(cpprunctl completion "
           "zsh)\nautoload -U +X bashcompinit && bashcompinit\n" +
           bash_script(commands);
  }
  CPPRUN_CHECK(shell == "bash");
  return "# cpprunctl completion for bash: eval \"$(cpprunctl completion bash)\"\n" +
         bash_script(commands);
}

}  // namespace cpprun::ctl

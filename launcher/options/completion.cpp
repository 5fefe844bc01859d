#include <vector>

#include "common/check.hpp"
#include "common/text.hpp"
#include "launcher/options/parse.hpp"

namespace cpprun {
namespace {

std::string all_options(std::string_view before, bool has_letters) {
  std::vector<std::string> tokens;
  for (const OptionRow& row : option_table()) {
    if (has_letters && row.details.letter != '\0')
      tokens.push_back(std::string("-") + row.details.letter);
    tokens.push_back(std::string(before) + std::string(row.name));
  }
  return text::join(tokens, " ");
}

// `text` between single quotes for zsh's _arguments, whose brackets and colons are escaped too.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string bash_cases() {
  std::string cases;
  for (const OptionRow& row : option_table()) {
    if (row.details.choices.empty() || !row.takes_value()) continue;
    std::string name(row.name);
    std::string other = underscored(name);
    cases += "    --" + name + (other == name ? "" : "|--" + other) + ") words='" +
             std::string(row.details.choices) + "' ;;\n";
  }
  return cases;
}

// After the first word that is neither an option nor an option's value come the script's arguments:
// complete files.
std::string bash_script() {
  return "# cpprun completion for bash: eval \"$(cpprun --print-completion bash)\"\n"
         "_cpprun() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=''\n"
         "  [[ $cur == = ]] && cur=''\n"
         "  [[ $prev == = && $COMP_CWORD -gt 1 ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  case $prev in\n" +
         bash_cases() +
         "  esac\n"
         "  [[ -z $words && $cur == -* ]] && words='" +
         all_options("--", true) +
         "'\n"
         "  COMPREPLY=()\n"
         "  [[ -n $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "}\n"
         "complete -o default -F _cpprun cpprun\n";
}

std::string zsh_script() {
  std::string script =
      "#compdef cpprun\n# cpprun completion for zsh: put this as _cpprun into a folder of "
      "$fpath\n_arguments -S \\\n";
  for (const OptionRow& row : option_table()) {
    std::string value;
    if (row.takes_value()) {
      std::string tokens =
          row.details.choices.empty() ? "" : "(" + std::string(row.details.choices) + ")";
      if (row.name == "log-dir") tokens = "_files -/";
      value = ":" + zsh_text(row.value) + ":" + tokens;
    }
    std::string help = "[" + zsh_text(row.help) + "]" + value + "' \\\n";
    if (row.details.letter != '\0') script += std::string("  '-") + row.details.letter + help;
    script += "  '--" + std::string(row.name) + (row.takes_value() ? "=" : "") + help;
  }
  return script + "  '(-)1:script:_files' '(-)*::argument:_files'\n";
}

std::string tcsh_script() {
  return "# cpprun completion for tcsh: eval \"`cpprun --print-completion tcsh`\"\n"
         "complete cpprun 'c/--/(" +
         all_options("", false) + ")/' 'p/*/f/';\n";
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  CPPRUN_CHECK(shell == "tcsh");
  return tcsh_script();
}

}  // namespace cpprun

#include "launcher/cpprunctl/ctl_completion.hpp"

#include "common/check.hpp"
#include "common/text.hpp"

namespace cpprun::ctl {
namespace {

// The first words of the verbs, without duplicates, in order.
std::vector<std::string> first_words(const std::vector<VerbHelp>& verbs) {
  std::vector<std::string> words;
  for (const VerbHelp& verb : verbs) {
    std::string word = verb.name.substr(0, verb.name.find(' '));
    if (words.empty() || words.back() != word) words.push_back(std::move(word));
  }
  return words;
}

std::vector<std::string> second_words(const std::vector<VerbHelp>& verbs,
                                      const std::string& first) {
  std::vector<std::string> words;
  for (const VerbHelp& verb : verbs) {
    if (verb.name.starts_with(first + " ")) words.push_back(verb.name.substr(first.size() + 1));
  }
  return words;
}

std::string bash_script(const std::vector<VerbHelp>& verbs) {
  std::string cases;
  for (const std::string& first : first_words(verbs)) {
    const std::string second = text::join(second_words(verbs, first), " ");
    if (!second.empty()) cases += "    '" + first + " ') words='" + second + "' ;;\n";
  }
  for (const VerbHelp& verb : verbs) {
    cases += "    '" + verb.name + " '*) options='" + text::join(verb.options, " ") + "' ;;\n";
  }
  return "_cpprunctl() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} words='' options=''\n"
         "  local before=\"${COMP_WORDS[*]:1:$((COMP_CWORD-1))} \"\n"
         "  case \"$before\" in\n"
         "    ' ') words='" +
         text::join(first_words(verbs), " ") + "' ;;\n" + cases +
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

std::string fish_script(const std::vector<VerbHelp>& verbs) {
  const std::string front = "complete -c cpprunctl -n '__fish_";
  std::string script = "# cpprunctl completion for fish: cpprunctl completion fish | source\n";
  for (const VerbHelp& verb : verbs) {
    const size_t blank = verb.name.find(' ');
    const std::string first = verb.name.substr(0, blank);
    const bool is_pair = blank != std::string::npos;
    const std::string last = is_pair ? verb.name.substr(blank + 1) : first;
    script += front + (is_pair ? "seen_subcommand_from " + first : "use_subcommand") + "' -a " +
              last + " -d '" + fish_text(verb.help) + "'\n";
    for (const std::string& option : verb.options) {
      const bool is_long = option.starts_with("--");
      script += front + "seen_subcommand_from " + last + "' " + (is_long ? "-l " : "-s ") +
                option.substr(is_long ? 2 : 1) + "\n";
    }
  }
  return script;
}

}  // namespace

std::string completion_script(std::string_view shell, const std::vector<VerbHelp>& verbs) {
  if (shell == "fish") return fish_script(verbs);
  if (shell == "zsh") {
    return "#compdef cpprunctl\n# cpprunctl completion for zsh: source <(cpprunctl completion "
           "zsh)\nautoload -U +X bashcompinit && bashcompinit\n" +
           bash_script(verbs);
  }
  CPPRUN_CHECK(shell == "bash");
  return "# cpprunctl completion for bash: eval \"$(cpprunctl completion bash)\"\n" +
         bash_script(verbs);
}

}  // namespace cpprun::ctl

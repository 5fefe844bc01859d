#include <algorithm>
#include <span>
#include <utility>

#include "launcher/cpprunctl/explain/explain.hpp"

namespace cpprun::ctl {
namespace {

using Words = std::vector<std::string>;
using Rest = std::span<const std::string>;

constexpr const char* kOthers[] = {"horovodrun", "deepspeed", "accelerate", "torchx",
                                   "mpirun",     "mpiexec",   "orterun"};

std::string file_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_ours(const std::string& word) {
  const std::string name = file_name_of(word);
  return name == "cpprun" || name == "torchrun";
}

// python, python3, python3.11
bool is_python(const std::string& word) {
  const std::string name = file_name_of(word);
  return name.starts_with("python") &&
         name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

bool is_variable(const std::string& word) {
  const size_t end = word.find('=');
  const auto is_of_name = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return end != std::string::npos && end > 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(end), is_of_name);
}

Error unknown(const std::string& word) {
  return Error{ErrorKind::BadValue,
               "explain knows lines of torchrun and cpprun, not of " + word +
                   "; docs/how-to/migrate.md has the same commands for cpprun"};
}

// The number of words that the interpreter and the launcher's module take; 0: another module.
size_t size_of_module(Rest rest, const char* module) {
  size_t at = 1;
  while (at < rest.size() && rest[at].starts_with('-') && rest[at] != "-m") ++at;
  const bool is_it = at + 1 < rest.size() && rest[at] == "-m" && rest[at + 1] == module;
  return is_it ? at + 2 : 0;
}

// torch.distributed.launch passes the local rank to the script as an argument, unless --use-env is
// given. Only the options before the script belong to the launcher.
Words words_of_launch(Rest rest) {
  const auto is_own = [](const std::string& word) {
    return word == "--use_env" || word == "--use-env";
  };
  const auto own = std::find_if(rest.begin(), rest.end(), is_own);
  const auto script = std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
    return !word.starts_with('-') && word.ends_with(".py");
  });
  Words words(rest.begin(), rest.end());
  if (own < script) {
    words.erase(words.begin() + (own - rest.begin()));
  } else {
    words.insert(words.begin(), "--pass-local-rank=dash");
  }
  return words;
}

// srun's options may have separate values, so this searches for the launcher.
Rest behind_srun(Rest rest) {
  const auto found = std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
    return is_ours(word) || is_python(word);
  });
  return rest.subspan(static_cast<size_t>(found - rest.begin()));
}

// Skips what precedes the launcher: variables, env, srun.
Rest behind_prefix(Rest rest, Words& variables) {
  while (!rest.empty()) {
    const std::string& word = rest[0];
    if (word == "srun") return behind_srun(rest);
    if (is_variable(word)) {
      variables.push_back(word);
    } else if (word != "env" && word != "--") {
      return rest;
    }
    rest = rest.subspan(1);
  }
  return rest;
}

Result<Words> words_of_python(Rest rest) {
  if (const size_t size = size_of_module(rest, "torch.distributed.launch"); size != 0) {
    return words_of_launch(rest.subspan(size));
  }
  const size_t size = size_of_module(rest, "torch.distributed.run");
  if (size == 0) return unknown("other programs of Python");
  rest = rest.subspan(size);
  return Words(rest.begin(), rest.end());
}

Result<Words> words_of(Rest rest) {
  const std::string& word = rest[0];
  const bool is_other =
      std::find(std::begin(kOthers), std::end(kOthers), file_name_of(word)) != std::end(kOthers);
  if (is_other) return unknown(file_name_of(word));
  if (is_python(word)) return words_of_python(rest);
  if (is_ours(word)) rest = rest.subspan(1);
  return Words(rest.begin(), rest.end());
}

}  // namespace

Result<LauncherCommand> read_launcher_command(const Words& typed) {
  LauncherCommand line;
  const Rest rest = behind_prefix(typed, line.variables);
  if (rest.empty()) {
    return Error{ErrorKind::Usage,
                 "usage: cpprunctl explain torchrun [options] script [arguments of the script]\n"
                 "cpprunctl: error: there is no line of torchrun or cpprun to explain"};
  }
  Result<Words> words = words_of(rest);
  if (!words) return words.error();
  line.words = std::move(*words);
  return line;
}

}  // namespace cpprun::ctl

#include "launcher/cpprunctl/slurm/slurm_script.hpp"

#include <algorithm>

#include "common/text.hpp"
#include "launcher/ssh/plan/shell_command.hpp"

namespace cpprun {
namespace {

constexpr std::string_view kFirstLine = "#SBATCH --job-name=";
constexpr std::string_view kArguments = "\"$@\"";

// Of the job: "#SBATCH --nodes=4" and its like. A name that the file sets is replaced there.
std::string with_value(const std::string& file, const std::string& name, const std::string& value) {
  const std::string line = "#SBATCH --" + name + "=" + value + "\n";
  const size_t own = file.find("#SBATCH --" + name + "=");
  const size_t at = own != std::string::npos ? own : file.find(kFirstLine);
  const size_t end = own != std::string::npos ? file.find('\n', own) + 1 : at;
  return file.substr(0, at) + line + file.substr(end);
}

// The comment about the file's use does not fit a script that has its program already.
std::string with_program(std::string file, const std::vector<std::string>& program) {
  std::string words;
  for (const std::string& word : program)
    words += (words.empty() ? "" : " ") + ssh::shell_quoted(word);
  const size_t at = file.rfind(kArguments);
  file.replace(at, kArguments.size(), words);
  const size_t usage = file.find("#\n#   sbatch ");
  const size_t rest = file.find("#\n# cpprun reads");
  return file.erase(usage, rest - usage);
}

bool is_one_word(const std::string& value) {
  return std::ranges::none_of(value, [](char c) { return c == ' ' || c == '#'; }) &&
         !text::has_control(value);
}

}  // namespace

Result<std::string> slurm_script(const SlurmScriptOptions& options) {
  std::string file(slurm_batch_file());
  for (const auto& [name, value] : options.sbatch) {
    if (value.empty()) continue;
    if (!is_one_word(value)) {
      return Error{ErrorKind::BadValue, "--" + name + "=" + value + " is not one word"};
    }
    file = with_value(file, name, value);
  }
  return options.program.empty() ? file : with_program(std::move(file), options.program);
}

}  // namespace cpprun

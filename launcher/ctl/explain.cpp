#include "launcher/ctl/explain.hpp"

#include "launcher/ctl/explanation.hpp"
#include "launcher/ctl/launcher_line.hpp"
#include "launcher/options/options.hpp"

namespace cpprun {

Result<std::string> explain(const std::vector<std::string>& words) {
  const Result<ctl::LauncherLine> line = ctl::read_launcher_line(words);
  if (!line) return line.error();
  Environment environment = real_environment();
  environment.variables.insert(environment.variables.begin(), line->variables.rbegin(),
                               line->variables.rend());  // the first of a name counts
  const Result<Asked> asked = read_options(line->words, environment);
  if (!asked) return asked.error();
  if (const auto* shown = std::get_if<Shown>(&*asked)) return shown->text;
  const auto& launch = std::get<Launch>(*asked);
  std::string text = ctl::explanation(launch.config);
  for (const std::string& warning : launch.warnings) text += "warning     " + warning + "\n";
  return text;
}

}  // namespace cpprun

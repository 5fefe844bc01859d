#include "launcher/ctl/explain.hpp"

#include "launcher/ctl/explanation.hpp"
#include "launcher/options/options.hpp"

namespace cpprun {

Result<std::string> explain(std::vector<std::string> words) {
  for (const char* before : {"--", "cpprun", "torchrun"}) {
    if (!words.empty() && words.front() == before) words.erase(words.begin());
  }
  const Result<Asked> asked = read_options(words, real_environment());
  if (!asked) return asked.error();
  if (const auto* shown = std::get_if<Shown>(&*asked)) return shown->text;
  const auto& launch = std::get<Launch>(*asked);
  std::string text = ctl::explanation(launch.config);
  for (const std::string& warning : launch.warnings) text += "warning     " + warning + "\n";
  return text;
}

}  // namespace cpprun

// scenario_run: runs the scripts of tests/scenarios and compares their transcripts.
//
//   scenario_run FILE...            # exit code 1 if one differs, or an expectation fails
//   scenario_run --rewrite FILE...  # takes the transcripts as they are now; read the difference
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/sim/scenario/scenario.hpp"

namespace cpprun::sim {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

void print_first_difference(const std::string& path, const std::string& expected,
                            const std::string& found) {
  std::vector<std::string> before = lines_of(expected);
  std::vector<std::string> now = lines_of(found);
  size_t i = 0;
  while (i < before.size() && i < now.size() && before[i] == now[i]) ++i;
  std::printf("%s:%zu: the transcript differs\n  expected: %s\n  found:    %s\n", path.c_str(),
              i + 1, i < before.size() ? before[i].c_str() : "(the end)",
              i < now.size() ? now[i].c_str() : "(the end)");
}

// True: the transcript matches.
bool play(const std::string& path, bool does_rewrite) {
  std::ifstream input(path);
  std::stringstream script;
  script << input.rdbuf();
  Result<ScenarioRun> run = run_scenario(script.str());
  if (!input || !run) {
    std::printf("%s: %s\n", path.c_str(), run ? "can't be read" : run.error().text.c_str());
    return false;
  }
  bool is_good = run->failures.empty();
  for (const std::string& what : run->failures) {
    std::printf("%s: %s\n", path.c_str(), what.c_str());
  }
  if (run->text == script.str()) return is_good;
  if (!does_rewrite) {
    print_first_difference(path, script.str(), run->text);
    return false;
  }
  std::ofstream output(path);
  output << run->text;
  return is_good && output.good();
}

}  // namespace
}  // namespace cpprun::sim

int main(int count, char** words) {
  std::vector<std::string> paths(words + 1, words + count);
  const bool does_rewrite = !paths.empty() && paths.front() == "--rewrite";
  if (does_rewrite) paths.erase(paths.begin());
  if (paths.empty()) {
    std::fputs("usage: scenario_run [--rewrite] FILE...\n", stderr);
    return 2;
  }
  int failed = 0;
  for (const std::string& path : paths) failed += cpprun::sim::play(path, does_rewrite) ? 0 : 1;
  std::printf("%zu scenarios, %d failed\n", paths.size(), failed);
  return failed == 0 ? 0 : 1;
}

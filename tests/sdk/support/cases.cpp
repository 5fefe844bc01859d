#include <cstdio>

#include "tests/sdk/support/cases.hpp"

namespace cpprun::test {

std::map<std::string, Case>& cases() {
  static std::map<std::string, Case> all;
  return all;
}

}  // namespace cpprun::test

int main(int argc, char** argv) {
  const auto& all = cpprun::test::cases();
  const auto found = argc > 1 ? all.find(argv[1]) : all.end();
  if (found == all.end()) {
    std::fprintf(stderr, "usage: sdk_..._cases CASE [WORD...]; the cases are\n");
    for (const auto& [name, run] : all) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  return found->second({argv + 2, argv + argc});
}

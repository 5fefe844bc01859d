// schedules FILE: for each line of FILE, a setting in the form of schedules_support.hpp with
// "steps", prints the numbers of each step; twins/schedules.py prints the same.
#include <cstdio>
#include <fstream>

#include "tests/sdk/optim/schedules_support.hpp"
#include "tests/sdk/support/cases.hpp"

SDK_CASE(schedules) {
  std::ifstream file(args.at(0));
  for (std::string line; std::getline(file, line);) {
    const auto setting = cpprun::test::Json::parse(line);
    cpprun::test::Scheduled scheduled(setting);
    std::puts(scheduled.line().c_str());
    for (int at = 0; at < setting.at("steps").get<int>(); ++at) {
      scheduled.step(at);
      std::puts(scheduled.line().c_str());
    }
  }
  return 0;
}

// A registry of cases: one rank's part in a test of several ranks. `sdk_<part>_cases NAME
// [WORD...]` runs one.
//
//   SDK_CASE(broadcast_mismatch) { ... return 0; }   // `args` are the words behind the name
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cpprun::test {

using Words = std::vector<std::string>;
using Case = std::function<int(const Words& args)>;

std::map<std::string, Case>& cases();

struct Registered {
  Registered(const char* name, Case run) { cases()[name] = std::move(run); }
};

}  // namespace cpprun::test

#define SDK_CASE(name)                                                           \
  static int run_##name(const ::cpprun::test::Words& args);                      \
  static const ::cpprun::test::Registered registered_##name(#name, &run_##name); \
  static int run_##name([[maybe_unused]] const ::cpprun::test::Words& args)

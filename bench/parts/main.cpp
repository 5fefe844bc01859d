// bench_parts [options of Google Benchmark]: times all parts.
// bench_parts --count PART ITERATIONS: runs one part, for instruction counts (bench/count.py), and
// prints its peak memory as the kernel reports it (for bench/compare).
// bench_parts --list: prints the names of the parts.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "bench/parts/parts.hpp"

namespace cpprun::bench {

std::map<std::string, MakePart>& parts() {
  static std::map<std::string, MakePart> all;
  return all;
}

namespace {

int count(const char* name, size_t iterations) {
  const auto found = parts().find(name);
  if (found == parts().end()) {
    std::fprintf(stderr, "bench_parts: there is no part '%s'; --list shows them\n", name);
    return 2;
  }
  found->second()(iterations);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM")) std::puts(line.c_str());
  }
  return 0;
}

void time_all() {
  for (const auto& [name, make] : parts()) {
    benchmark::RegisterBenchmark(name.c_str(), [make = make](benchmark::State& state) {
      constexpr size_t kBatch = 16;
      const Loop loop = make();
      while (state.KeepRunningBatch(kBatch)) loop(kBatch);
    });
  }
  benchmark::RunSpecifiedBenchmarks();
}

}  // namespace
}  // namespace cpprun::bench

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--list") {
    for (const auto& [name, make] : cpprun::bench::parts()) std::puts(name.c_str());
    return 0;
  }
  if (first == "--count" && argc == 4) {
    return cpprun::bench::count(argv[2], std::strtoull(argv[3], nullptr, 10));
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  cpprun::bench::time_all();
  return 0;
}

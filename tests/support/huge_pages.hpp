// What this process has in huge pages of shared memory.
#pragma once

#include <cstddef>
#include <fstream>
#include <string>

namespace cpprun::test {

inline size_t kib_in_huge_pages() {
  std::ifstream sums("/proc/self/smaps_rollup");
  std::string word;
  while (sums >> word && word != "ShmemPmdMapped:") continue;
  size_t kib = 0;
  sums >> kib;
  return kib;
}

}  // namespace cpprun::test

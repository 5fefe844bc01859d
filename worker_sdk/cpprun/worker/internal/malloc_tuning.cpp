#include "cpprun/worker/internal/malloc_tuning.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace cpprun::worker {
namespace {

constexpr int kMmapThreshold = 1 << 30;        // blocks up to 1 GiB come from the heap
constexpr int kTrimThreshold = 2'000'000'000;  // what the heap may keep at its end
constexpr int kTopPad = 64 << 20;              // the heap grows by this at least

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_left_alone() {
  constexpr const char* kOwn[] = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_",
                                  "MALLOC_TOP_PAD_"};
  return variable("CPPRUN_MALLOC") == "default" ||
         variable("GLIBC_TUNABLES").find("glibc.malloc.") != std::string_view::npos ||
         std::any_of(std::begin(kOwn), std::end(kOwn),
                     [](const char* name) { return !variable(name).empty(); });
}

}  // namespace

bool tune_malloc() {
#ifdef M_MMAP_THRESHOLD
  if (is_left_alone()) return false;
  return ::mallopt(M_MMAP_THRESHOLD, kMmapThreshold) == 1 &&
         ::mallopt(M_TRIM_THRESHOLD, kTrimThreshold) == 1 && ::mallopt(M_TOP_PAD, kTopPad) == 1;
#else
  return false;
#endif
}

}  // namespace cpprun::worker

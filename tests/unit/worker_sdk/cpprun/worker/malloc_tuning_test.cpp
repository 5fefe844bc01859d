#include "cpprun/worker/internal/malloc_tuning.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // g++
#define HAS_MALLOC_OF_SANITIZER 1
#elif defined(__has_feature)
#define HAS_MALLOC_OF_SANITIZER __has_feature(address_sanitizer)  // clang
#else
#define HAS_MALLOC_OF_SANITIZER 0
#endif

namespace cpprun::worker {
namespace {

TEST(MallocTuning, KeepsSettingsOfTheUser) {
  for (const char* own : {"CPPRUN_MALLOC=default", "MALLOC_TOP_PAD_=1",
                          "GLIBC_TUNABLES=a.b=1:glibc.malloc.arena_max=2"}) {
    const char* const environment[] = {"HOME=/root", own, nullptr};
    EXPECT_FALSE(tune_malloc(environment)) << own;
  }
}

#if !HAS_MALLOC_OF_SANITIZER

constexpr size_t kFilled = 32 << 20;

size_t resident() {
  size_t all = 0, in_memory = 0;
  std::ifstream("/proc/self/statm") >> all >> in_memory;
  return in_memory * static_cast<size_t>(::getpagesize());
}

bool can_fill() {
  utsname system{};
  ::uname(&system);
  const int major = std::atoi(system.release);
  return major > 5 || (major == 5 && std::atoi(system.release + 2) >= 14);
}

// In its own process, whose malloc may be changed.
int fills_by() {
  const char* const nothing[] = {nullptr};
  if (!tune_malloc(nothing)) return -1;
  // Memory that earlier tests have freed is resident already.
  const void* const end = ::sbrk(0);
  for (int i = 0; i < 4096 && ::sbrk(0) == end; ++i) {
    void* volatile kept = std::malloc(1 << 20);
    static_cast<void>(kept);
  }
  const size_t before = resident();
  fill_heap(kFilled);
  return static_cast<int>((resident() - before) >> 20);
}

TEST(MallocTuning, ReservesTheHeapBeforeUse) {
  if (!can_fill()) GTEST_SKIP() << "Linux before 5.14";
  EXPECT_EXIT(::_exit(fills_by() >= int{kFilled >> 20} ? 0 : 1), testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace cpprun::worker

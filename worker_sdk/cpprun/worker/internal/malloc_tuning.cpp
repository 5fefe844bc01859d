#include "cpprun/worker/internal/malloc_tuning.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace cpprun::worker {
namespace {

constexpr int kMmapThreshold = 1 << 30;        // blocks up to 1 GiB come from the heap
constexpr int kTrimThreshold = 2'000'000'000;  // bytes that the heap may keep free at its end
constexpr int kTopPad = 64 << 20;              // bytes by which the heap grows at least
constexpr int kPopulateWrite = 23;             // MADV_POPULATE_WRITE of Linux 5.14
constexpr size_t kMoreThanTop = 1 << 20;       // more than malloc keeps at the heap's end initially

bool is_configured_by_user(const char* const* environment) {
  constexpr std::string_view kOwn[] = {"CPPRUN_MALLOC=default", "MALLOC_MMAP_THRESHOLD_=",
                                       "MALLOC_TRIM_THRESHOLD_=", "MALLOC_TOP_PAD_="};
  for (; *environment != nullptr; ++environment) {
    const std::string_view each = *environment;
    for (const std::string_view own : kOwn) {
      if (each.starts_with(own)) return true;
    }
    const bool is_tunables = each.starts_with("GLIBC_TUNABLES=");
    if (is_tunables && each.find("glibc.malloc.") != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

bool tune_malloc(const char* const* environment) {
#ifdef M_MMAP_THRESHOLD
  if (is_configured_by_user(environment)) return false;
  return ::mallopt(M_MMAP_THRESHOLD, kMmapThreshold) == 1 &&
         ::mallopt(M_TRIM_THRESHOLD, kTrimThreshold) == 1 && ::mallopt(M_TOP_PAD, kTopPad) == 1;
#else
  static_cast<void>(environment);
  return false;
#endif
}

void fill_heap(size_t bytes) {
  void* volatile block = std::malloc(kMoreThanTop);  // volatile: keeps malloc and free
  std::free(block);
  const auto end = reinterpret_cast<uintptr_t>(::sbrk(0));
  const auto begin = reinterpret_cast<uintptr_t>(block);
  // Not in the brk heap.
  if (begin == 0 || begin > end || end - begin > uintptr_t{2} * kTopPad) return;
  const auto page = static_cast<uintptr_t>(::getpagesize());
  const uintptr_t from = (begin + page - 1) / page * page;
  if (bytes > end - from) return;
  // Older kernels refuse; the heap then fills by page faults.
  static_cast<void>(::madvise(reinterpret_cast<void*>(from), bytes, kPopulateWrite));
}

}  // namespace cpprun::worker

// Mapped memory, for huge pages too. A header alone: the worker SDK uses it without the module.
#pragma once

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace cpprun {

inline constexpr size_t kHugePage = 2 << 20;
inline constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1; glibc 2.36 does not define it

struct Unmap {
  size_t bytes = 0;
  void operator()(std::byte* at) const { ::munmap(at, bytes); }
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

// Maps as mmap() does, but at a multiple of a huge page: the kernel maps huge pages only there.
// Null: errno has the reason.
inline Mapping map_aligned(size_t bytes, int protection, int flags, int memory, off_t at = 0) {
  constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t length = (bytes + page - 1) / page * page;
  void* const found = ::mmap(nullptr, length + kHugePage, PROT_NONE, kNothing, -1, 0);
  if (found == MAP_FAILED) return {};
  auto* const begin = static_cast<std::byte*>(found);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + length, kHugePage - before);
  Mapping mapping(begin + before, Unmap{bytes});
  if (::mmap(mapping.get(), bytes, protection, flags | MAP_FIXED, memory, at) == MAP_FAILED) {
    const int why = errno;
    mapping.reset();
    errno = why;
  }
  return mapping;
}

// Makes the pages of `part`, which is mapped shared memory, huge where the kernel can: the first
// writes to small pages take a page fault each, and these take longer than a copy. Shared memory,
// unlike private memory, gets huge pages only by MADV_COLLAPSE, which needs at least one touched
// page per huge page. For memory of map_aligned().
inline void use_huge_pages(std::span<std::byte> part) {
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t from = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t to = (begin + part.size()) / kHugePage * kHugePage;
  for (uintptr_t at = from; at < to; at += kHugePage) {
    static_cast<void>(*reinterpret_cast<const volatile std::byte*>(at));
  }
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, kCollapse);
}

}  // namespace cpprun

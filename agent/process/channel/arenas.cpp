#include "agent/process/channel/arenas.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "common/limits/channel.hpp"
#include "common/machine/usable_memory.hpp"
#include "common/text.hpp"
#include "common/thread/loop_mark.hpp"

namespace cpprun {
namespace {

constexpr uint64_t kStep = 2 << 20;  // sizes are multiples of a huge page

std::string gib_text(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1ULL << 30));
  return text;
}

}  // namespace

uint64_t memory_for_arenas() {
  const Unblocking limits_of_memory("the kernel has meminfo and the limits of cgroups in memory");
  return usable_memory() / 100 * limits::kArenaMemoryPercent;
}

Result<UniqueFd> sealed_memory(const char* name, uint64_t bytes, const std::string& what) {
  UniqueFd memory(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.is_open()) return system_error("memfd_create", errno);
  const bool is_sealed =
      ::ftruncate(memory.get(), static_cast<off_t>(bytes)) == 0 &&
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (!is_sealed) return system_error("sealing " + what, errno);
  return memory;
}

void Arenas::set_workers(size_t workers) {
  const std::lock_guard lock(mutex_);
  workers_ = workers;
}

Result<Arenas::Piece> Arenas::want(int local_rank, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto found = arenas_.find(local_rank);
  if (found == arenas_.end()) {
    if (bytes == 0) return Piece{};
    Result<Arena> made = make();
    if (!made) return made.error();
    found = arenas_.emplace(local_rank, std::move(*made)).first;
  }
  Arena& arena = found->second;
  if (bytes > arena.size) {
    return Error{ErrorKind::Refused,
                 "a worker's snapshots in memory may take " + gib_text(arena.size) +
                     " (all workers of a node: half of its memory), and this one needs " +
                     gib_text(bytes)};
  }
  const uint64_t whole = (bytes + kStep - 1) / kStep * kStep;
  arena.bytes = std::max(arena.bytes, std::min(whole, arena.size));
  return Piece{arena.bytes > 0 ? arena.memory.get() : -1, arena.bytes};
}

Result<Arenas::Arena> Arenas::make() const {
  Arena arena;
  arena.size = memory_() / std::max<size_t>(workers_, 1) / kStep * kStep;
  Result<UniqueFd> memory = sealed_memory("cpprun-arena", arena.size, "memory for snapshots");
  if (!memory) return memory.error();
  arena.memory = std::move(*memory);
  // A reader must not reopen the memory for writing through /proc.
  if (::fchmod(arena.memory.get(), 0400) == 0) return arena;
  return system_error("sealing memory for snapshots", errno);
}

std::vector<int> Arenas::local_ranks() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> all;
  for (const auto& [local_rank, arena] : arenas_) all.push_back(local_rank);
  return all;
}

Result<Arenas::View> Arenas::view(int local_rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = arenas_.find(local_rank);
  if (found == arenas_.end() || found->second.bytes == 0) {
    return Error{ErrorKind::Refused,
                 "local rank " + std::to_string(local_rank) + " keeps nothing in memory"};
  }
  const std::string own = "/proc/self/fd/" + std::to_string(found->second.memory.get());
  const Unblocking memfd("memory of this process");
  UniqueFd reading(::open(own.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reading.is_open()) return system_error("opening " + own, errno);
  return View{std::move(reading), found->second.bytes};
}

}  // namespace cpprun

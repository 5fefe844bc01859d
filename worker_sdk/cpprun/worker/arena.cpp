#include "cpprun/worker/arena.hpp"

#include <errno.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

#include "common/check.hpp"
#include "common/machine/mapping.hpp"
#include "cpprun/worker/internal/own_agent.hpp"

namespace cpprun::worker {
namespace {

using Mapped = Result<std::span<std::byte>>;

Mapped map(size_t bytes, int protection, int flags, int memory) {
  if (bytes == 0) return std::span<std::byte>();
  Mapping mapping = map_aligned(bytes, protection, flags, memory);
  if (!mapping) {
    const int why = errno;
    return system_error("mapping " + std::to_string(bytes) + " bytes for snapshots in memory", why);
  }
  std::byte* const at = mapping.release();
  ::madvise(at, bytes, MADV_HUGEPAGE);  // fewer page faults at the first touch
  ::madvise(at, bytes, MADV_DONTDUMP);  // a core dump is for the stack, not for the state
  ::madvise(at, bytes, MADV_DONTFORK);  // not counted as memory of data loading children
  return std::span<std::byte>(at, bytes);
}

Error refused(const std::string& why) { return Error{ErrorKind::Refused, why}; }

// Maps the memory of the agent's answer.
Mapped mapped(const std::optional<AgentSocket::Answer>& answer, int protection) {
  if (!answer) return refused("the agent does not answer");
  const auto* arena = std::get_if<channel::Arena>(&answer->message);
  if (arena == nullptr) return refused("the agent's answer makes no sense");
  if (!arena->refusal.empty()) return refused(arena->refusal);
  if (arena->bytes == 0) return std::span<std::byte>();
  const int memory = answer->descriptor();
  if (!is_safe_memory(memory, arena->bytes)) {
    return refused("the agent's memory is smaller than it states");
  }
  return map(arena->bytes, protection, MAP_SHARED, memory);
}

void log_once(const std::string& why) {
  static std::atomic<bool> is_reported{false};
  if (is_reported.exchange(true)) return;
  std::fprintf(stderr,
               "cpprun: after a crash of this worker its snapshot is read from disk, not "
               "from memory: %s\n",
               why.c_str());
}

}  // namespace

Result<Arena> Arena::own(size_t bytes) {
  const AgentSocket& agent = own_agent();
  if (!agent.has_snapshots()) return of_process(bytes);
  const Mapped memory =
      mapped(agent.request(channel::ArenaRequest{.bytes = bytes}), PROT_READ | PROT_WRITE);
  if (memory) return Arena(*memory, Kind::Agent);
  log_once(memory.error().text);
  return of_process(bytes);
}

Result<Arena> Arena::of(int local_rank) {
  const AgentSocket& agent = own_agent();
  if (!agent.has_snapshots()) return refused("there is no agent to ask for another worker's arena");
  const channel::PeerArenaRequest request{.local_rank = static_cast<uint32_t>(local_rank)};
  const Mapped memory = mapped(agent.request(request), PROT_READ);
  if (!memory) return memory.error();
  return Arena(*memory, Kind::AnothersWorker);
}

Result<Arena> Arena::of_process(size_t bytes) {
  const Mapped memory =
      map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (!memory) return memory.error();
  return Arena(*memory, Kind::Process);
}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(kind_, other.kind_);
  return *this;
}

Arena::~Arena() {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

std::span<std::byte> Arena::writable() {
  CPPRUN_CHECK(kind_ != Kind::AnothersWorker);
  return memory_;
}

void Arena::use_huge_pages(std::span<std::byte> part) {
  if (kind_ == Kind::Agent) cpprun::use_huge_pages(part);
}

}  // namespace cpprun::worker

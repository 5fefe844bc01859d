// Arena: the memory in which a worker keeps the state of its training for whoever comes after it.
//
// Under cpprun it belongs to the agent, one arena for each local rank: a worker that is started
// anew finds what the one before it left, however that one ended. Without an agent, or where the
// agent gives none, it is this process's own and ends with it. What stands in it is not said here
// (snapshot_files/arena_slots.hpp); whoever reads it trusts nothing, since a worker may have been
// killed while it wrote. Any thread, one at a time for each Arena.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "common/result.hpp"

namespace cpprun::worker {

class Arena {
 public:
  // This local rank's arena of at least so many bytes: the same memory as in the round before, and
  // as an earlier call gave. New memory is zeros. 0: as large as it is, maybe of no bytes at all.
  // If the agent gives none, that is said once on stderr and the arena is our own. Error (System):
  // there is no memory for it.
  static Result<Arena> own(size_t bytes);
  // As own(), and never the agent's: it ends with this process.
  static Result<Arena> of_process(size_t bytes);
  // The arena of another worker of this node, to read; it may write meanwhile. Error (Refused):
  // that local rank has none, or there is no agent.
  static Result<Arena> of(int local_rank);

  Arena(Arena&& other) noexcept : memory_(std::exchange(other.memory_, {})), kind_(other.kind_) {}
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::span<const std::byte> bytes() const { return memory_; }
  // The same to write to; requires that it is our own.
  std::span<std::byte> writable();
  // Huge pages for `part`, which is of writable() and is used for the first time by this process.
  // The kernel pins each page of what goes to a disk past its cache, which for pages of 4 KiB is
  // most of the work. Where it can't (before Linux 6.1), all stays as it is.
  void use_huge_pages(std::span<std::byte> part);
  // It is the agent's: what is in it is there for the next round's worker.
  bool outlives_process() const { return kind_ != Kind::Process; }

 private:
  enum class Kind { Process, Agent, AnothersWorker };
  Arena(std::span<std::byte> memory, Kind kind) : memory_(memory), kind_(kind) {}
  std::span<std::byte> memory_;  // mapped, page aligned
  Kind kind_;
};

}  // namespace cpprun::worker

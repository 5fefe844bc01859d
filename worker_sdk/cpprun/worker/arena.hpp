/// @file
/// Arena: memory in which a worker keeps the state of its training for the worker that replaces it.
///
/// Under cpprun the memory belongs to the agent, one arena per local rank: a restarted worker finds
/// what its predecessor left, however that process ended. Without an agent, or if the agent
/// refuses, the memory belongs to this process and ends with it. The content is that of
/// snapshot_files/folders/arena_slots.hpp. A reader must verify what it reads, since the writer may
/// have been killed while it wrote. Threads: any, one at a time per Arena.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "common/result.hpp"

namespace cpprun::worker {

/// Memory in which a worker keeps the state of its training for the worker that replaces it. Any
/// thread, one at a time per Arena.
class Arena {
 public:
  /// This local rank's arena, at least `bytes` bytes: the same memory as in the round before and as
  /// an earlier call returned. New memory is zero. `bytes` 0: whatever size the arena has, possibly
  /// 0. If the agent refuses, the result is memory of this process, and cpprun prints a line on
  /// stderr.
  /// Error (System): the memory cannot be mapped.
  static Result<Arena> own(size_t bytes);
  /// Memory of this process, even if there is an agent.
  static Result<Arena> of_process(size_t bytes);
  /// The arena of another worker of this node, read-only; that worker may write meanwhile. Error
  /// (Refused): that local rank has no arena, or there is no agent.
  static Result<Arena> of(int local_rank);

  /// @{
  /// Move the mapping; addresses in it stay the same.
  Arena(Arena&& other) noexcept : memory_(std::exchange(other.memory_, {})), kind_(other.kind_) {}
  Arena& operator=(Arena&& other) noexcept;
  /// @}
  ~Arena();

  /// The memory, at a page's start. It is valid until the Arena is destroyed.
  std::span<const std::byte> bytes() const { return memory_; }
  /// Requires that this is not another worker's arena.
  std::span<std::byte> writable();
  /// Asks for huge pages for `part`, a part of writable() that this process has not used yet. A
  /// direct write to disk makes the kernel pin every page, which is most of the work with 4 KiB
  /// pages. No effect before Linux 6.1.
  void use_huge_pages(std::span<std::byte> part);
  /// True if the agent owns the memory, so that the next round's worker finds the content.
  bool outlives_process() const { return kind_ != Kind::Process; }

 private:
  enum class Kind { Process, Agent, AnothersWorker };
  Arena(std::span<std::byte> memory, Kind kind) : memory_(memory), kind_(kind) {}
  std::span<std::byte> memory_;  // mapped, page aligned
  Kind kind_;
};

}  // namespace cpprun::worker

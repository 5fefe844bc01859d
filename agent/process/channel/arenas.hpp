// Arenas: the agent's shared memory for its workers' snapshots, one arena per local rank. It
// survives the workers, so that those of the next round find their state. It has no name, so that
// the kernel frees it when the agent ends in any way.
//
// An arena has its full size from the beginning and cannot shrink or grow, so that neither a worker
// nor the agent gets SIGBUS; untouched pages cost nothing. All arenas together take at most half of
// the memory that this agent may use, divided evenly. With --snapshot-replicas a neighbour's
// replicas take a part of that (agent/daemon/snapshots/shards.hpp). Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

// The part of the usable memory that all arenas of an agent may take, in bytes.
uint64_t memory_for_arenas();

// Shared memory that no process can shrink or grow, so that no reader of it gets SIGBUS. Errors
// call it `what`.
Result<UniqueFd> sealed_memory(const char* name, uint64_t bytes, const std::string& what);

class Arenas {
 public:
  // `memory` returns the bytes that all arenas may take together. Called when an arena is made.
  explicit Arenas(std::function<uint64_t()> memory) : memory_(std::move(memory)) {}

  // The number of workers that share the memory. Applies to arenas made from now on.
  void set_workers(size_t workers);

  struct Piece {
    int descriptor = -1;  // ours
    uint64_t bytes = 0;   // 0: the worker asked for none so far, and there is no descriptor
  };
  // The arena of this rank, enlarged to at least `bytes`; it never becomes smaller. Error
  // (Refused): the rank's part of the memory is smaller; (System): the kernel refused the memory.
  Result<Piece> want(int local_rank, uint64_t bytes);

  struct View {
    UniqueFd descriptor;  // read-only
    uint64_t bytes = 0;
  };
  // Error (Refused): this rank has no arena.
  Result<View> view(int local_rank) const;
  // The local ranks that have an arena, ascending.
  std::vector<int> local_ranks() const;

 private:
  struct Arena {
    UniqueFd memory;
    uint64_t size = 0;   // of the memory
    uint64_t bytes = 0;  // that the worker may use
  };
  Result<Arena> make() const;

  const std::function<uint64_t()> memory_;
  mutable std::mutex mutex_;  // guards the members below
  size_t workers_ = 1;
  std::map<int, Arena> arenas_;  // by local rank
};

}  // namespace cpprun

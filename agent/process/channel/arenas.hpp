// Arenas: the memory that an agent keeps for its workers' snapshots, one piece for each local rank.
// It survives the workers, so that those of the next round find their state, and is gone with the
// agent, however that ends: it has no name.
//
// The agent never maps it. A piece has its full size from the beginning and can't be made shorter
// or longer (a worker that maps it is never hit by another one's cut); what nobody has touched
// costs nothing. All pieces together are at most half of the memory that this agent may use, shared
// out evenly; with --snapshot-replicas the copies of a neighbour's take a part of that
// (agent/daemon/snapshots/shards.hpp). Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

// The memory of this machine, or less where a cgroup allows less.
uint64_t usable_memory();

// What all arenas of an agent may take of it, in bytes.
uint64_t memory_for_arenas();

class Arenas {
 public:
  // `memory`: what all of them may take together, in bytes. Asked when one is made.
  explicit Arenas(std::function<uint64_t()> memory) : memory_(std::move(memory)) {}

  // How many workers share it. Counts for arenas that are made from now on.
  void set_workers(size_t workers);

  struct Piece {
    int descriptor = -1;  // ours
    uint64_t bytes = 0;   // 0: nothing was ever wanted, there is no descriptor
  };
  // This rank's arena with at least so many bytes; it never becomes smaller. Error (Refused): its
  // share does not hold so many; (System): there is no memory.
  Result<Piece> want(int local_rank, uint64_t bytes);

  struct View {
    UniqueFd descriptor;  // can only be read
    uint64_t bytes = 0;
  };
  // Error (Refused): this rank has none.
  Result<View> view(int local_rank) const;
  // The local ranks that have one, ascending.
  std::vector<int> local_ranks() const;

 private:
  struct Arena {
    UniqueFd memory;
    uint64_t size = 0;   // of the memory
    uint64_t bytes = 0;  // that are given out
  };
  Result<Arena> make() const;

  const std::function<uint64_t()> memory_;
  mutable std::mutex mutex_;  // of all below
  size_t workers_ = 1;
  std::map<int, Arena> arenas_;  // by local rank
};

}  // namespace cpprun

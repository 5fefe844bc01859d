// Shares: what lies complete in an agent's arenas, one share of a snapshot in memory for each local
// rank, and how another agent's shares get into them (--snapshot-replicas).
//
// Not the workers' way to their own arenas (agent/process/channel/arenas.hpp) and no decision which
// shares are wanted (share_plan.hpp). A share's bytes are the worker SDK's affair; here they are
// only carried. Workers write meanwhile, so what was read is whole only if its crc32 says so.
// Thread: any; a ShareRoom one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agent/process/channel/arenas.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/transfer/share_wire.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun {

// Where an agent's own shares lie, and the copies that it keeps of a neighbour's.
struct ShareShelves {
  std::shared_ptr<Arenas> own;
  std::shared_ptr<Arenas> copies;
};

// Of each arena at most two. What can't be read is left out.
std::vector<ShareName> shares_in(const Arenas& arenas);

struct OpenShare {
  UniqueFd file;  // stands at its first byte
  uint64_t bytes = 0;
};
// Error (Refused): it is not there any more.
Result<OpenShare> open_share(const Arenas& arenas, const ShareName& name);

// A share that comes into an arena. Until complete() is called it does not count, and the last
// complete one that lies beside it does.
class ShareRoom {
 public:
  // Error (Refused, System, BadValue): there is no room for it.
  static Result<ShareRoom> make(Arenas& arenas, const ShareName& name);
  ShareRoom(ShareRoom&&) noexcept = default;

  std::span<std::byte> bytes() const { return bytes_; }  // to be filled
  // All of it is there. Error (Protocol): it is not what was named.
  Status check();
  // Requires that check() has said so.
  void complete();

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* at) const;
  };
  using Mapping = std::unique_ptr<std::byte, Unmap>;
  ShareRoom(Mapping mapping, const ShareName& name);

  Mapping mapping_;
  snapshot_files::ArenaSlots slots_;
  ShareName name_;
  std::span<std::byte> bytes_;
};

}  // namespace cpprun

// Brings shares from another agent's memory into ours. What the other sends may be anything: a
// share counts when all that belong to it are here and each has the checksum that was named.
//
// For threads that may wait. Every wait has a limit and ends when the Stopper says so.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/daemon/snapshots/peer_socket.hpp"
#include "agent/daemon/snapshots/share_plan.hpp"
#include "common/limits/fetch.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/transfer/share_wire.hpp"

namespace cpprun {

struct ShareSource {
  control::Peer peer;
  std::string secret;
  Duration stalls = limits::kSnapshotStalls;
};

struct CopyCount {
  uint64_t copied = 0;
  uint64_t left_out = 0;
};
struct CopyEvents {
  std::function<void(int64_t step)> on_copied;
  std::function<void(const std::string& why)> on_trouble;  // there are no copies; maybe often
};
// Copies the shares of a neighbour, each new save as soon as it is seen and the last one is done,
// until it is stopped. A neighbour that does not answer is asked again. The newest counts: a save
// that came and went while a copy was under way is left out.
CopyCount keep_copies(const ShareSource& source, Arenas& copies,
                      const std::shared_ptr<const Stopper>& stopper, const CopyEvents& events);

struct TakenBack {
  Status status;
  int64_t step = -1;  // negative: the neighbour had nothing for these ranks, or they were here
};
// Brings the copies of these ranks' shares from a neighbour into our own arenas.
TakenBack take_back(const ShareSource& source, const OwnRanks& ranks, Arenas& own,
                    const std::shared_ptr<const Stopper>& stopper);

}  // namespace cpprun

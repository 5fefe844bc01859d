#include "cpprun/snapshot/save/staged_agreement.hpp"

#include <string>

#include "cpprun/snapshot/outcome_codec.hpp"

namespace cpprun::snapshot {

Status agree_on_staged(const Status& own, const SnapshotComm& comm, StoreChannel& channel) {
  const Status sent = channel.set("staged/" + std::to_string(comm.rank()), encode(own));
  if (comm.is_first()) {
    Status failed;
    for (int rank = 0; rank < comm.world(); ++rank) {
      const auto received = decode_outcome(channel.get("staged/" + std::to_string(rank)), rank);
      if (!received && failed) failed = received.error();
    }
    const Status reported_all = channel.set("all_staged", encode(failed));
    if (!reported_all) return reported_all;
  }
  const auto all = decode_outcome(channel.get("all_staged"), 0);
  return all ? sent : all.error();
}

}  // namespace cpprun::snapshot

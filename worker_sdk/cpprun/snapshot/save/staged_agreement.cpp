#include "cpprun/snapshot/save/staged_agreement.hpp"

#include <cstdio>

#include "cpprun/snapshot/outcome_codec.hpp"

namespace cpprun::snapshot {

Status StagedAgreement::agree(const Result<std::string>& own, StoreChannel& channel) {
  const Status sent = channel.set("staged/" + std::to_string(comm_.rank()), encode(own));
  if (comm_.is_first()) {
    Status failed;
    for (int rank = 0; rank < comm_.world(); ++rank) {
      const auto received = decode_outcome(channel.get("staged/" + std::to_string(rank)), rank);
      if (!received && failed) failed = received.error();
    }
    const Status reported_all = channel.set("all_staged", encode(failed));
    if (!reported_all) return reported_all;
  }
  const auto all = decode_outcome(channel.get("all_staged"), 0);
  return all ? sent : all.error();
}

// Ranks that write one snapshot have equal parameters, else it is a patchwork that no rank had. The
// first save compares all of them (hints.cpp), each one a sample.
void StagedAgreement::compare(const std::string& own, int64_t step, const Group& group,
                              StoreChannel& channel) {
  if (own.empty() || has_reported_drift_ || comm_.rank() != group.leader()) return;
  for (const int rank : group.members) {
    if (rank == comm_.rank()) continue;
    const auto other = decode_outcome(channel.get("staged/" + std::to_string(rank)), rank);
    if (!other || *other == own) continue;
    has_reported_drift_ = true;
    std::fprintf(
        stderr,
        "cpprun: hint: at step %lld parameter '%s' is not the same on ranks %d and %d, and "
        "the snapshot that they write together has each only once: they have drifted "
        "apart (.hints = false silences this)\n",
        static_cast<long long>(step), own.substr(0, own.rfind(' ')).c_str(), comm_.rank(), rank);
    return;
  }
}

}  // namespace cpprun::snapshot

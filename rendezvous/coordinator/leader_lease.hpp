// Leader lease: what a coordinator leads with that was elected through etcd (docs/protocol.md,
// R18).
#pragma once

#include <optional>
#include <string>

#include "common/time.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun {

struct LeaderLease {
  std::string run_id;                                 // of the one job that it is for
  std::optional<control::PersistedJobState> facts{};  // what that goes on from; nothing: it is new
  Instant
      until{};  // no worker lease goes beyond, until Coordinator::lead_until() says a later time
};

}  // namespace cpprun

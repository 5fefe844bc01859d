// StartupProgress: the milestones of a round's workers from spawn to first step. The node reaches a
// milestone with its last worker. Pure: the caller passes the times.
//
// Programs without the SDK report no milestone; then the node never reaches one.
#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun::agent {

class StartupProgress {
 public:
  // Starts a round of so many workers and forgets the previous one.
  void begin(size_t workers);

  // The worker has connected to the agent's socket, so its libraries are loaded.
  void connected(LocalRank worker, Instant now);
  // The worker is ready, or has loaded its snapshot; the later event counts.
  void loaded(LocalRank worker, Instant now);
  // The worker finished its first step. True once: for the last worker.
  bool stepped(LocalRank worker);

  // When the last worker did; unset: some worker has not.
  std::optional<Instant> connected_at() const { return when(connected_); }
  std::optional<Instant> loaded_at() const { return when(loaded_); }

 private:
  struct Reached {
    std::set<int64_t> workers;
    Instant last;
  };
  std::optional<Instant> when(const Reached& reached) const;

  size_t workers_ = 0;
  Reached connected_;
  Reached loaded_;
  std::set<int64_t> stepped_;
};

}  // namespace cpprun::agent

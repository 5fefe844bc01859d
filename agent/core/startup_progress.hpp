// StartupProgress: how far the workers of a round are on their way from being spawned to their
// first step, by their own words. A phase is over for the node when its last worker has said the
// word that ends it. Pure: the times are given.
//
// Workers that say nothing (programs without the SDK) keep it from ever being over: then nobody
// learns of a first step, and nothing is claimed.
#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "common/ids.hpp"
#include "common/time.hpp"

namespace cpprun::agent {

class StartupProgress {
 public:
  // A round of so many workers here; what was said before counts no more.
  void begin(size_t workers);

  // It talks to the agent: its libraries are loaded.
  void connected(LocalRank worker, Instant now);
  // It is set up, or has loaded what it goes on from: whichever comes last counts.
  void loaded(LocalRank worker, Instant now);
  // True, once: this was the last worker's first step.
  bool stepped(LocalRank worker);

  // When the last of them did; nothing: some have not said so.
  std::optional<Instant> connected_at() const { return when(connected_); }
  std::optional<Instant> loaded_at() const { return when(loaded_); }

 private:
  struct Reached {
    std::set<int64_t> workers;
    Instant last;
  };
  std::optional<Instant> when(const Reached& said) const;

  size_t workers_ = 0;
  Reached connected_;
  Reached loaded_;
  std::set<int64_t> stepped_;
};

}  // namespace cpprun::agent

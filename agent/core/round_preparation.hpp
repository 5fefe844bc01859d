// RoundPreparation: what a node does between the rank assignment and the start of its workers. The
// daemon fetches the round's snapshot and the node's replicas first; when both are here, or cannot
// come, it makes the round's files. Pure.
#pragma once

#include <utility>

#include "agent/core/effects.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

class RoundPreparation {
 public:
  // Forgets the previous round and begins what this one needs.
  void begin(const control::RankAssignment& assignment, const control::Register& facts,
             Effects& effects);
  // Call when no fetch is left.
  void make_files(const control::RankAssignment& assignment, Effects& effects);
  // The round ends before its workers have started.
  void cancel(Effects& effects);

  // The answers to FetchSnapshot, FetchReplicas and PrepareRound. False: none is awaited, because a
  // stop came first.
  bool on_snapshot_fetched() { return std::exchange(is_fetching_snapshot_, false); }
  bool on_replicas_fetched() { return std::exchange(is_fetching_replicas_, false); }
  bool on_files_made();

  bool is_fetching() const { return is_fetching_snapshot_ || is_fetching_replicas_; }
  // An answer of the daemon is awaited.
  bool is_waiting() const { return is_fetching() || files_ == Files::Awaited; }
  // The workers can start.
  bool is_done() const { return files_ == Files::Ready; }

 private:
  enum class Files { None, Awaited, Ready };

  bool is_fetching_snapshot_ = false;
  bool is_fetching_replicas_ = false;  // shards in a neighbour's memory
  Files files_ = Files::None;
};

}  // namespace cpprun::agent

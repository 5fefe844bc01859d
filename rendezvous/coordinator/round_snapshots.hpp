// RoundSnapshots: which snapshot the rounds of a job resume from, where nodes fetch it, and which
// node keeps replicas of whose shards.
//
// A core: no I/O, no clock. Secrets come from outside.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/coordinator/node.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class RoundSnapshots {
 public:
  // `make_secret`: a fresh random secret for each round in which nodes fetch from each other. None:
  // nodes fetch nothing.
  explicit RoundSnapshots(std::function<std::string()> make_secret)
      : make_secret_(std::move(make_secret)) {}

  // Writes into the assignments, one per node in rank order, what each node resumes from and where
  // it fetches that.
  void choose(const std::vector<Node*>& ranked, std::vector<control::RankAssignment>& assignments);
  // Writes into the assignments whose replicas each node keeps, and where its own lie. `are_new`:
  // nodes that were in no round yet. Requires: choose() for the same round.
  void add_replicas(const std::vector<Node*>& ranked, const std::vector<bool>& are_new,
                    std::vector<control::RankAssignment>& assignments) const;
  // The job continues from a round of another coordinator.
  void restore(const control::RankAssignment& assignment);
  void set_fetched(bool is_fetched) { is_fetched_ = is_fetched; }

  // The snapshot that this round had to fetch does not match its manifest. Such a failure costs no
  // restart, because the next round takes another snapshot.
  bool is_new_damage(const control::Failed& message) const {
    return resume_ && is_fetched_ && resume_->id == message.damaged_snapshot;
  }
  // No node fetches this snapshot any more, so damage can't repeat for ever.
  void mark_damaged(const std::string& id) { damaged_.insert(id); }
  // A member of the round could not load this snapshot. If the round resumed from it, no later one
  // does.
  void mark_unusable(const std::string& id) {
    if (resume_ && resume_->id == id) unusable_.insert(id);
  }

  // What the newest round resumed from; nothing: it began anew.
  const std::optional<control::SnapshotName>& resume() const { return resume_; }
  // Whether some of its nodes had to fetch it.
  bool is_fetched() const { return is_fetched_; }

 private:
  const std::function<std::string()> make_secret_;
  std::optional<control::SnapshotName> resume_;
  bool is_fetched_ = false;
  std::set<std::string> damaged_;   // ids
  std::set<std::string> unusable_;  // ids
};

}  // namespace cpprun

// This process among the ranks that make snapshots together, and how they talk: by collectives in
// the training thread, by keys of a store in the writing thread. Private to snapshot.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "cpprun/dist/store.hpp"

namespace cpprun::snapshot {

class SnapshotComm {
 public:
  // Of the default group; alone without one. Throws std::logic_error when a launcher has started
  // several ranks, and there is no group yet.
  static SnapshotComm here();

  int rank() const { return rank_; }
  int world() const { return world_; }
  bool is_first() const { return rank_ == 0; }

  // Collectives: all ranks, same order.
  std::vector<std::string> gather(const std::string& text) const;
  bool any(bool own) const;
  std::vector<int64_t> from_first(std::vector<int64_t> numbers) const;

  // A connection of its own to the group's store; empty when alone.
  dist::Store connect() const;

 private:
  int rank_ = 0, world_ = 1;
};

// The keys of one save. Each is told once, by one rank. Waits are limited, and end when
// `gives_up` is set.
class StoreChannel {
 public:
  StoreChannel(dist::Store store, std::string prefix, const std::atomic<bool>& gives_up)
      : store_(std::move(store)), prefix_(std::move(prefix)), gives_up_(gives_up) {}

  Status set(const std::string& key, const std::string& value);
  Result<std::string> get(const std::string& key);
  // Takes away what this rank has told, when nobody needs it any more.
  void delete_keys();

 private:
  dist::Store store_;  // empty: alone
  std::string prefix_;
  const std::atomic<bool>& gives_up_;
  std::map<std::string, std::string> told_;
};

// Ranks that write into the same folder, and all such groups of the world.
struct Group {
  std::vector<int> members;  // ascending; the first one leads
  std::vector<int> leaders;  // of all groups, ascending; the first is rank 0
  int leader() const { return members.front(); }
  // Where among the members; -1: no member.
  int place_of(int rank) const;
};

}  // namespace cpprun::snapshot

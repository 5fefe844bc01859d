// Communication between the ranks that write a snapshot: collectives in the training thread, keys
// of a store in the threads that save. Private to snapshot.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "cpprun/dist/store.hpp"

namespace cpprun::snapshot {

// The ranks of this node.
struct NodeRanks {
  int first_rank = 0;
  int count = 1;
  // Empty for a rank of another node.
  std::optional<int> local_rank_of(int rank) const {
    if (rank < first_rank || rank >= first_rank + count) return std::nullopt;
    return rank - first_rank;
  }
};

class SnapshotComm {
 public:
  // The ranks of the default group; without a group, this process alone. Throws std::logic_error
  // when a launcher has started several ranks and there is no group yet.
  static SnapshotComm here();

  int rank() const { return rank_; }
  int world() const { return world_; }
  bool is_first() const { return rank_ == 0; }
  NodeRanks node() const;

  // Collectives: all ranks call them in the same order.
  std::vector<std::string> gather(const std::string& text) const;
  // The highest of each of these numbers on all ranks, which give as many.
  std::vector<int64_t> highest(std::vector<int64_t> numbers) const;
  std::vector<int64_t> from_first(std::vector<int64_t> numbers) const;

  // A new connection to the group's store; empty for a single rank.
  dist::Store connect() const;

 private:
  int rank_ = 0, world_ = 1;
};

// The store keys that one thread uses for one save. One rank sets each key, once. get() waits for a
// key for a limited time, and returns an error as soon as `gives_up` is set.
class StoreChannel {
 public:
  StoreChannel(dist::Store store, std::string prefix, const std::atomic<bool>& gives_up)
      : store_(std::move(store)), prefix_(std::move(prefix)), gives_up_(gives_up) {}

  Status set(const std::string& key, const std::string& value);
  Result<std::string> get(const std::string& key);
  // Deletes the keys that this rank has set; call it when no rank reads them any more.
  void delete_keys();

 private:
  dist::Store store_;  // empty for a single rank
  std::string prefix_;
  const std::atomic<bool>& gives_up_;
  std::map<std::string, std::string> own_values_;  // by key; empty texts if there is a store
};

// What a rank has of the shared files, which are divided into pieces of equal size.
struct Share {
  int pieces = 1;
  int kept_from = 0, kept_to = 1;  // the pieces that it copies into memory
  int written = 0;                 // the piece that it writes to disk; -1: none
  bool keeps(int piece) const { return piece >= kept_from && piece < kept_to; }
};

// The ranks that see the same folder as this rank, and the leaders of all such groups.
struct Group {
  std::vector<int> members;             // ascending; the first is the leader
  std::vector<int> leaders;             // of all groups, ascending; the first is rank 0
  std::vector<std::vector<int>> nodes;  // the members of each node
  bool is_single_file = false;          // which the leader writes

  int leader() const { return members.front(); }
  // Index in `members`; -1 if the rank is not a member.
  int place_of(int rank) const;
  const std::vector<int>& node_of(int rank) const;
  // Whether the memory of each node has all pieces: nodes have as many members, or one of each node
  // keeps everything.
  bool serves_memory() const;
  // The rank that writes each piece of a folder. The pieces that a rank keeps lie one behind the
  // other, and one rank of each node keeps them.
  std::vector<int> writers() const;
  // `in_memory`: the ranks of a node keep all pieces; else each keeps what it writes.
  Share share_of(int rank, bool in_memory) const;
};

}  // namespace cpprun::snapshot

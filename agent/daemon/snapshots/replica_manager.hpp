// ReplicaManager: what an agent does for --snapshot-replicas: keeps replicas of its neighbour's
// shards in memory, and brings its own back from a neighbour when it comes in the place of a node
// that was lost. Peers are waited for on threads of their own; everything comes back on the loop.
//
// Thread: the loop's. Owner: the daemon. Callbacks are never called from inside a member function,
// and never after the end of this object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/daemon/loop_poster.hpp"
#include "agent/daemon/snapshots/replica_transfer.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class ReplicaManager {
 public:
  struct Events {
    std::function<void()> on_sought;  // seek() is over, whatever came of it
    std::function<void(bool is_rare, const std::string&)> on_note;  // at INFO, else DEBUG
    std::function<void(const std::string&)> on_warning;             // worth a line for people
  };

  // `workers`: of this node. Half of the memory for snapshots is for the replicas.
  ReplicaManager(boost::asio::io_context& loop, size_t workers, Events events);
  ~ReplicaManager();
  ReplicaManager(const ReplicaManager&) = delete;

  const ShardArenas& shard_arenas() const { return shard_arenas_; }

  // Of nobody's shards: nothing. What was kept before stays until there are newer ones.
  void keep(const std::optional<control::PeerAddress>& of, const std::string& secret);
  // The shards of this node's ranks of `assignment` from the neighbour, unless they are here.
  void seek(const control::PeerAddress& at, const control::RankAssignment& assignment);
  void cancel_fetch();

 private:
  void on_copied(const control::PeerAddress& of, int64_t step);
  void on_replicated(const control::PeerAddress& of, const ReplicaCount& count);
  void on_trouble(const control::PeerAddress& of, const std::string& why);
  void on_restored(const control::PeerAddress& at, const RestoreResult& back);

  const size_t workers_;
  const ShardArenas shard_arenas_;  // shared with the threads
  const Events events_;
  const std::shared_ptr<LoopPoster> poster_;  // shared with the threads
  std::shared_ptr<CancelToken> replicating_;  // of what runs, shared with its thread
  std::shared_ptr<CancelToken> fetching_;
  bool is_trouble_reported_ = false;
};

}  // namespace cpprun

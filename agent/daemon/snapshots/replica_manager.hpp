// ReplicaManager: implements --snapshot-replicas. It keeps replicas of a neighbour's shards in
// memory, and fetches its own shards from a neighbour when this node replaces a lost one. Transfers
// run on threads of their own; callbacks run on the loop.
//
// Thread: the loop's. Owner: the daemon. Calls no callback from inside a member function, and none
// after its destruction.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/daemon/snapshots/replica_transfer.hpp"
#include "common/loop/background_work.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class ReplicaManager {
 public:
  struct Events {
    std::function<void()> on_fetch_ended;  // fetch() has ended, with or without success
    std::function<void(bool is_rare, const std::string&)> on_note;  // rare: level INFO, else DEBUG
    std::function<void(const std::string&)> on_warning;
  };

  // `workers`: of this node. Half of the memory for snapshots is reserved for replicas.
  ReplicaManager(boost::asio::io_context& loop, size_t workers, std::shared_ptr<const JobTls> tls,
                 Events events);
  ~ReplicaManager();
  ReplicaManager(const ReplicaManager&) = delete;

  const ShardArenas& shard_arenas() const { return shard_arenas_; }

  // Replicates the shards of `of` from now on; nullopt: stops replicating. Old replicas stay until
  // newer ones replace them.
  void replicate(const std::optional<control::PeerAddress>& of, const std::string& secret);
  // Fetches the shards of this node's ranks in `assignment` from `at`, unless this node has them.
  void fetch(const control::PeerAddress& at, const control::RankAssignment& assignment);
  void cancel_fetch();

 private:
  void on_copied(const control::PeerAddress& of, int64_t step);
  void on_replicated(const control::PeerAddress& of, const ReplicaCount& count);
  void on_trouble(const control::PeerAddress& of, const std::string& why);
  void on_restored(const control::PeerAddress& at, const RestoreResult& back);

  const size_t workers_;
  const std::shared_ptr<const JobTls> tls_;  // null: plain connections
  const ShardArenas shard_arenas_;           // shared with the threads
  const Events events_;
  BackgroundWork background_;
  std::shared_ptr<CancelToken> replicating_;  // of the running thread, shared with it
  std::shared_ptr<CancelToken> fetching_;
  bool is_trouble_reported_ = false;
};

}  // namespace cpprun

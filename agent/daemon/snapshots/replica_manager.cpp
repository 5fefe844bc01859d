#include "agent/daemon/snapshots/replica_manager.hpp"

#include <sys/resource.h>

#include <utility>

#include "common/endpoint.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

std::shared_ptr<Arenas> half_of_memory(size_t workers) {
  auto arenas = std::make_shared<Arenas>([] { return memory_for_arenas() / 2; });
  arenas->set_workers(workers);
  return arenas;
}

std::string name_of(const control::PeerAddress& peer) {
  return to_string(Endpoint{peer.address, static_cast<uint16_t>(peer.port)});
}

OwnRanks ranks_of(const control::RankAssignment& assignment, size_t workers) {
  return {static_cast<int>(assignment.base_rank), static_cast<int>(workers),
          static_cast<int>(assignment.world_size)};
}

}  // namespace

ReplicaManager::ReplicaManager(boost::asio::io_context& loop, size_t workers,
                               std::shared_ptr<const JobTls> tls, Events events)
    : workers_(workers),
      tls_(std::move(tls)),
      shard_arenas_{half_of_memory(workers), half_of_memory(workers)},
      events_(std::move(events)),
      background_(loop) {}

ReplicaManager::~ReplicaManager() {
  cancel_fetch();
  if (replicating_) replicating_->stop();
}

void ReplicaManager::replicate(const std::optional<control::PeerAddress>& of,
                               const std::string& secret) {
  if (replicating_) replicating_->stop();
  replicating_.reset();
  if (!of) return;
  replicating_ = std::make_shared<CancelToken>();
  const ShardSource source{.peer = *of, .secret = secret, .tls = tls_};
  ReplicaEvents events;
  events.on_copied = [this, way = background_.poster(), of = *of](int64_t step) {
    LoopPoster::post(way, [this, of, step] { on_copied(of, step); });
  };
  events.on_trouble = [this, way = background_.poster(), of = *of](const std::string& why) {
    LoopPoster::post(way, [this, of, why] { on_trouble(of, why); });
  };
  const auto work = [source, events, replicas = shard_arenas_.replicas, token = replicating_] {
    ::setpriority(PRIO_PROCESS, 0, limits::kReplicaNice);  // of this thread alone
    return keep_replicas(source, *replicas, token, events);
  };
  const Status ok = background_.run(
      work, [this, of = *of](const ReplicaCount& count) { on_replicated(of, count); });
  if (!ok) on_trouble(*of, ok.error().text);
}

void ReplicaManager::fetch(const control::PeerAddress& at,
                           const control::RankAssignment& assignment) {
  cancel_fetch();
  fetching_ = std::make_shared<CancelToken>();
  shard_arenas_.own->set_workers(workers_);
  const ShardSource source{.peer = at, .secret = assignment.snapshot_secret, .tls = tls_};
  const auto done = [this, at, token = fetching_](const RestoreResult& back) {
    if (token == fetching_) on_restored(at, back);
  };
  const auto work = [source, ranks = ranks_of(assignment, workers_), own = shard_arenas_.own,
                     token = fetching_] { return restore_shards(source, ranks, *own, token); };
  background_.run_or(work, done, [](const Status& error) { return RestoreResult{error}; });
}

void ReplicaManager::cancel_fetch() {
  if (fetching_) fetching_->stop();
  fetching_.reset();
}

void ReplicaManager::on_replicated(const control::PeerAddress& of, const ReplicaCount& count) {
  events_.on_note(true, "copied " + text::count(count.copied, "save") + " of " + name_of(of) +
                            " into memory; left out: " + std::to_string(count.left_out));
}

void ReplicaManager::on_copied(const control::PeerAddress& of, int64_t step) {
  events_.on_note(
      false, "the memory of " + name_of(of) + " at step " + std::to_string(step) + " is copied");
}

// Warns once per job: a connection that is too slow stays so.
void ReplicaManager::on_trouble(const control::PeerAddress& of, const std::string& why) {
  if (std::exchange(is_trouble_reported_, true)) return;
  events_.on_warning("the newest saves of " + name_of(of) +
                     " have no replicas in memory here: " + why + "; this message appears once");
}

void ReplicaManager::on_restored(const control::PeerAddress& at, const RestoreResult& back) {
  cancel_fetch();
  if (!back.status) {
    events_.on_warning("no replicas of this node's memory could be had from " + name_of(at) + ": " +
                       back.status.error().text + "; it resumes from disk");
  } else if (back.step >= 0) {
    events_.on_note(true, "this node's memory of step " + std::to_string(back.step) +
                              " came from " + name_of(at));
  } else {
    events_.on_note(true, name_of(at) + " holds no replicas of this node's memory");
  }
  events_.on_fetch_ended();
}

}  // namespace cpprun

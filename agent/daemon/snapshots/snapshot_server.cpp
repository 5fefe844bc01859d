#include "agent/daemon/snapshots/snapshot_server.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <exception>
#include <mutex>
#include <optional>
#include <string>

#include "agent/daemon/snapshots/peer_socket.hpp"
#include "common/limits/server.hpp"
#include "common/limits/snapshots.hpp"
#include "common/log/log.hpp"
#include "common/machine/clock.hpp"
#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"
#include "snapshot_files/folders/catalog.hpp"

namespace cpprun {
namespace {

using snapshot_files::FoundSnapshot;
using snapshot_protocol::Answer;
using snapshot_protocol::Request;

// Opens a regular file of exactly this size; does not follow links.
UniqueFd open_exactly(const std::string& path, uint64_t bytes) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  const bool is_it = file.is_open() && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                     static_cast<uint64_t>(info.st_size) == bytes;
  return is_it ? std::move(file) : UniqueFd();
}

}  // namespace

class SnapshotServer::Impl {
 public:
  Impl(std::string dir, ShardArenas shards, std::shared_ptr<const JobTls> tls)
      : dir_(std::move(dir)), shards_(std::move(shards)), tls_(std::move(tls)) {}

  void allow(const std::string& secret) {
    const std::lock_guard lock(mutex_);
    secret_ = secret;
  }

  // A lack of memory costs this peer, and no place of later ones.
  void serve_guarded(PeerSocket& peer) {
    PeerState state;
    try {
      serve(peer, state);
    } catch (const std::exception& error) {
      log::warning(std::string("serving snapshots to another node failed: ") + error.what());
    }
    if (state.is_served) leave();
  }

 private:
  struct PeerState {
    bool is_served = false;
    std::optional<FoundSnapshot> snapshot;  // the last requested snapshot
  };

  bool enter() {
    const std::lock_guard lock(mutex_);
    if (served_ >= limits::kSnapshotPeers) return false;
    ++served_;
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --served_;
  }

  void serve(PeerSocket& peer, PeerState& state) {
    if (tls_) {
      const Status ok = peer.secure(tls_->accept(TlsRole::Agent), limits::kSnapshotRequestTimeout);
      if (!ok) return report_refused(ok.error().text);
    }
    for (;;) {
      // The peer may be busy with its disk between two files.
      Result<std::string> line = peer.receive_line(
          state.is_served ? limits::kSnapshotStallTimeout : limits::kSnapshotRequestTimeout);
      if (!line) break;
      const Result<replica_protocol::Request> about_shards =
          replica_protocol::decode_request(*line);
      if (about_shards) {
        if (answer_shards(peer, *about_shards, state)) continue;
        break;
      }
      Result<Request> request = snapshot_protocol::decode_request(*line);
      if (!request || !answer(peer, *request, state)) break;
    }
  }

  // Any program that reaches the port can cause it, so once a minute.
  void report_refused(const std::string& why) {
    const Instant now = boot_now();
    {
      const std::lock_guard lock(mutex_);
      if (refused_at_ && now - *refused_at_ < limits::kRepeatLogInterval) return;
      refused_at_ = now;
    }
    log::warning("refused a transfer to another node: " + why);
  }

  bool is_secret(const std::string& secret) {
    const std::lock_guard lock(mutex_);
    return !secret_.empty() && are_same_secret(secret, secret_);
  }

  static bool send(PeerSocket& peer, const std::string& bytes) {
    return peer.send(bytes, limits::kSnapshotStallTimeout).ok();
  }
  static bool refuse(PeerSocket& peer, Answer::Kind kind, const std::string& why) {
    static_cast<void>(send(peer, encode(Answer{kind, 0, why})));
    return false;
  }
  static bool send_file(PeerSocket& peer, int file, uint64_t bytes) {
    return send(peer, encode(Answer{Answer::Kind::Bytes, bytes})) &&
           peer.send_file(file, bytes, limits::kSnapshotStallTimeout).ok();
  }

  // On false the peer has received the reason.
  bool admit(PeerSocket& peer, const std::string& secret, PeerState& state) {
    if (!is_secret(secret)) return refuse(peer, Answer::Kind::Secret, "");
    if (!state.is_served) state.is_served = enter();
    return state.is_served || refuse(peer, Answer::Kind::Busy, "");
  }

  bool answer_shards(PeerSocket& peer, const replica_protocol::Request& request, PeerState& state) {
    if (!admit(peer, request.secret, state)) return false;
    const bool is_own = request.shard_namespace == replica_protocol::ShardNamespace::Own;
    const std::shared_ptr<Arenas>& shard_namespace = is_own ? shards_.own : shards_.replicas;
    if (!shard_namespace) return refuse(peer, Answer::Kind::No, "it keeps no replicas in memory");
    if (!request.shard) {
      const std::string names = replica_protocol::encode(shards_in(*shard_namespace));
      return send(peer, encode(Answer{Answer::Kind::Bytes, names.size()}) + names);
    }
    const Result<OpenShard> shard = open_shard(*shard_namespace, *request.shard);
    if (!shard) {  // a newer save has replaced it; the peer may ask for another shard
      return send(peer, encode(Answer{Answer::Kind::No, 0, shard.error().text}));
    }
    return send_file(peer, shard->file.get(), shard->bytes);
  }

  // Returns false if the connection must be closed.
  bool answer(PeerSocket& peer, const Request& request, PeerState& state) {
    if (!admit(peer, request.secret, state)) return false;
    std::optional<FoundSnapshot>& snapshot = state.snapshot;
    const bool is_found = snapshot && snapshot->manifest.id == request.snapshot.id;
    if (!is_found) snapshot = find(request.snapshot);
    if (!snapshot) return refuse(peer, Answer::Kind::No, "it is not there any more");
    uint64_t bytes = 0;
    UniqueFd file = open(*snapshot, request.file, bytes);
    if (!file.is_open()) return refuse(peer, Answer::Kind::No, "no such file in this snapshot");
    return send_file(peer, file.get(), bytes);
  }

  std::optional<FoundSnapshot> find(const control::SnapshotName& name) const {
    const std::string path = dir_ + "/" + snapshot_files::snapshot_name(name.step);
    Result<FoundSnapshot> found = snapshot_files::look_at(snapshot_files::real_files(), path);
    if (!found || found->manifest.id != name.id) return std::nullopt;
    return *found;
  }

  // Opens the manifest, or a file that it names.
  static UniqueFd open(const FoundSnapshot& snapshot, const std::string& name, uint64_t& bytes) {
    const std::string path = snapshot.path + "/" + name;
    if (name == snapshot_files::kManifestName) {
      Result<snapshot_files::Info> info = snapshot_files::real_files().info(path);
      if (!info || info->bytes > limits::kManifestBytes) return UniqueFd();
      bytes = info->bytes;
    } else if (const auto* file = snapshot.manifest.find(name)) {
      bytes = file->bytes;
    } else {
      return UniqueFd();
    }
    return open_exactly(path, bytes);
  }

  const std::string dir_;
  const ShardArenas shards_;
  const std::shared_ptr<const JobTls> tls_;
  std::mutex mutex_;
  std::string secret_;
  size_t served_ = 0;  // connections that have sent the secret
  std::optional<Instant> refused_at_;
};

Result<std::unique_ptr<SnapshotServer>> SnapshotServer::start(const std::string& dir,
                                                              const std::string& address,
                                                              ShardArenas shards,
                                                              std::shared_ptr<const JobTls> tls) {
  auto impl = std::make_shared<Impl>(dir, std::move(shards), std::move(tls));
  Result<std::unique_ptr<PeerListener>> listener =
      PeerListener::start(address, limits::kSnapshotConnections,
                          [impl](PeerSocket& peer) { impl->serve_guarded(peer); });
  if (!listener) {
    return Error{listener.error().kind,
                 "snapshots can't be served to other nodes: " + listener.error().text};
  }
  return std::unique_ptr<SnapshotServer>(new SnapshotServer(std::move(impl), std::move(*listener)));
}

SnapshotServer::SnapshotServer(std::shared_ptr<Impl> impl, std::unique_ptr<PeerListener> listener)
    : impl_(std::move(impl)), listener_(std::move(listener)) {}
SnapshotServer::~SnapshotServer() = default;
uint16_t SnapshotServer::port() const { return listener_->port(); }
void SnapshotServer::allow(const std::string& secret) { impl_->allow(secret); }

}  // namespace cpprun

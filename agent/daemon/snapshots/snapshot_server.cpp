#include "agent/daemon/snapshots/snapshot_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <exception>
#include <mutex>
#include <optional>
#include <string>

#include "agent/daemon/snapshots/peer_socket.hpp"
#include "common/limits/server.hpp"
#include "common/limits/snapshots.hpp"
#include "common/log/log.hpp"
#include "common/loop/loop_poster.hpp"
#include "common/machine/sockets.hpp"
#include "common/thread/detached_thread.hpp"
#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"
#include "snapshot_files/folders/catalog.hpp"

namespace cpprun {
namespace {

using snapshot_files::FoundSnapshot;
using snapshot_protocol::Answer;
using snapshot_protocol::Request;

constexpr int kBacklog = 256;

// Compares in constant time for secrets of equal length.
bool are_same(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

// At a free port; on all interfaces without an address.
UniqueFd listen_on(const std::string& address) {
  const std::optional<SocketAddress> place = tcp_address(address, 0);
  UniqueFd socket = place ? bind_tcp(*place) : UniqueFd();
  if (address.empty()) socket = bind_all(0);
  const bool is_listening = socket.is_open() && ::listen(socket.get(), kBacklog) == 0;
  return is_listening ? std::move(socket) : UniqueFd();
}

// Opens a regular file of exactly this size; does not follow links.
UniqueFd open_exactly(const std::string& path, uint64_t bytes) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  const bool is_it = file.is_open() && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                     static_cast<uint64_t>(info.st_size) == bytes;
  return is_it ? std::move(file) : UniqueFd();
}

}  // namespace

class SnapshotServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(std::string dir, UniqueFd listener, ShardArenas shards, std::shared_ptr<const JobTls> tls)
      : dir_(std::move(dir)),
        shards_(std::move(shards)),
        tls_(std::move(tls)),
        listener_(std::move(listener)),
        port_(local_port(listener_.get())) {}

  Status start() {
    return start_detached_thread([self = shared_from_this()] { self->accept_all(); });
  }
  void stop() { cancel_token_->stop(); }
  uint16_t port() const { return port_; }

  void allow(const std::string& secret) {
    const std::lock_guard lock(mutex_);
    secret_ = secret;
  }

 private:
  struct PeerState {
    bool is_served = false;
    std::optional<FoundSnapshot> snapshot;  // the last requested snapshot
  };

  void accept_all() {
    std::array<pollfd, 2> both{
        {{listener_.get(), POLLIN, 0}, {cancel_token_->descriptor(), POLLIN, 0}}};
    for (;;) {
      if (::poll(both.data(), both.size(), -1) < 0) continue;
      if (both[1].revents != 0) return;
      UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.is_open()) {
        take(PeerSocket(std::move(socket), cancel_token_));
      } else if (cancel_token_->wait(limits::kAcceptPause)) {  // perhaps out of descriptors: retry
        return;
      }
    }
  }

  void take(PeerSocket peer) {
    if (!enter(connections_, limits::kSnapshotConnections)) return;
    auto shared = std::make_shared<PeerSocket>(std::move(peer));  // std::function must be copyable
    const Status ok = start_detached_thread([self = shared_from_this(), shared] {
      self->serve_guarded(*shared);
      self->leave(self->connections_);
    });
    if (!ok) leave(connections_);
  }

  bool enter(size_t& count, size_t most) {
    const std::lock_guard lock(mutex_);
    if (count >= most) return false;
    ++count;
    return true;
  }
  void leave(size_t& count) {
    const std::lock_guard lock(mutex_);
    --count;
  }

  // A lack of memory costs this peer, and no place of later ones.
  void serve_guarded(PeerSocket& peer) {
    PeerState state;
    try {
      serve(peer, state);
    } catch (const std::exception& error) {
      log::warning(std::string("serving snapshots to another node failed: ") + error.what());
    }
    if (state.is_served) leave(served_);
  }

  void serve(PeerSocket& peer, PeerState& state) {
    if (tls_) {
      const Status ok =
          peer.secure(tls_->accept(TlsRole::Snapshots), limits::kSnapshotRequestTimeout);
      if (!ok) return log::warning("refused a transfer to another node: " + ok.error().text);
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

  bool is_secret(const std::string& secret) {
    const std::lock_guard lock(mutex_);
    return !secret_.empty() && are_same(secret, secret_);
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
    if (!state.is_served) state.is_served = enter(served_, limits::kSnapshotPeers);
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
  const UniqueFd listener_;
  const uint16_t port_;
  // Shared with the sockets of all threads.
  const std::shared_ptr<CancelToken> cancel_token_ = std::make_shared<CancelToken>();
  std::mutex mutex_;
  std::string secret_;
  size_t connections_ = 0;
  size_t served_ = 0;  // connections that have sent the secret
};

Result<std::unique_ptr<SnapshotServer>> SnapshotServer::start(const std::string& dir,
                                                              const std::string& address,
                                                              ShardArenas shards,
                                                              std::shared_ptr<const JobTls> tls) {
  UniqueFd listener = listen_on(address);
  if (!listener.is_open()) {
    return Error{ErrorKind::System, "no port could be opened on " +
                                        (address.empty() ? "this machine" : address) +
                                        " from which other nodes could fetch snapshots"};
  }
  auto impl = std::make_shared<Impl>(dir, std::move(listener), std::move(shards), std::move(tls));
  if (Status ok = impl->start(); !ok) return ok.error();
  return std::unique_ptr<SnapshotServer>(new SnapshotServer(std::move(impl)));
}

SnapshotServer::SnapshotServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
SnapshotServer::~SnapshotServer() { impl_->stop(); }
uint16_t SnapshotServer::port() const { return impl_->port(); }
void SnapshotServer::allow(const std::string& secret) { impl_->allow(secret); }

}  // namespace cpprun

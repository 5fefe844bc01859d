#include "agent/daemon/snapshots/replica_transfer.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/machine/clock.hpp"
#include "snapshot_files/archive/bytes.hpp"

namespace cpprun {
namespace {

using replica_protocol::ShardNamespace;

constexpr Duration kRestoreRetry = std::chrono::milliseconds(100);
constexpr int kTooSlow = 3;  // failed copies in a row before a warning

// A connection to the agent with the shards.
class PeerConnection {
 public:
  static Result<PeerConnection> open(const ShardSource& source,
                                     std::shared_ptr<const CancelToken> cancel_token) {
    const bool is_port = source.peer.port > 0 && source.peer.port <= UINT16_MAX;
    if (!is_port) return Error{ErrorKind::Protocol, "its port is none"};
    Result<PeerSocket> socket =
        PeerSocket::connect(source.peer.address, static_cast<uint16_t>(source.peer.port),
                            source.stalls, std::move(cancel_token), source.tls.get());
    if (!socket) return socket.error();
    return PeerConnection(source, std::move(*socket));
  }

  Result<std::vector<ShardId>> names(ShardNamespace shard_namespace) {
    const Result<uint64_t> bytes =
        ask({source_->secret, shard_namespace, {}}, limits::kShardListBytes);
    if (!bytes) return bytes.error();
    std::string text(*bytes, '\0');
    Status got = receive(archive::writable_bytes_of(text));
    if (!got) return got.error();
    return replica_protocol::decode_shards(text);
  }

  // Fills `writer`. Error (Refused): a newer save has replaced the shard.
  Status get(ShardNamespace shard_namespace, const ShardId& name, ShardWriter& writer) {
    const Result<uint64_t> bytes = ask({source_->secret, shard_namespace, name}, name.bytes);
    if (!bytes) return bytes.error();
    if (*bytes != name.bytes) return Error{ErrorKind::Protocol, "a shard has another size"};
    Status got = receive(writer.bytes());
    return got ? writer.check() : got;
  }

 private:
  PeerConnection(const ShardSource& source, PeerSocket socket)
      : source_(&source), socket_(std::move(socket)) {}

  // Returns the number of bytes that follow.
  Result<uint64_t> ask(const replica_protocol::Request& request, uint64_t most) {
    const Result<uint64_t> bytes = socket_.ask(encode(request), source_->stalls);
    if (bytes && *bytes > most) return Error{ErrorKind::Protocol, "more came than may come"};
    return bytes;
  }

  // Requires a minimum rate: a peer that sends single bytes must not delay the job for ever.
  Status receive(std::span<std::byte> into) {
    const auto seconds = static_cast<int64_t>(into.size() / limits::kShardBytesPerSecond);
    const Instant until = boot_now() + source_->stalls + std::chrono::seconds(seconds);
    while (!into.empty()) {
      const Result<size_t> size = socket_.receive(into, source_->stalls);
      if (!size) return size.error();
      into = into.subspan(*size);
      if (boot_now() > until) return Error{ErrorKind::Network, "it comes too slowly"};
    }
    return {};
  }

  const ShardSource* source_;
  PeerSocket socket_;
};

Result<std::vector<ShardWriter>> writers_for(const std::vector<ShardId>& shards, Arenas& arenas) {
  std::vector<ShardWriter> writers;
  for (const ShardId& shard : shards) {
    Result<ShardWriter> writer = ShardWriter::make(arenas, shard);
    if (!writer) return writer.error();
    writers.push_back(std::move(*writer));
  }
  return writers;
}

// Completes all shards of a save, or none.
Status copy_all(PeerConnection& connection, ShardNamespace shard_namespace,
                const std::vector<ShardId>& theirs, std::vector<ShardWriter>& writers) {
  for (size_t i = 0; i < writers.size(); ++i) {
    if (Status got = connection.get(shard_namespace, theirs[i], writers[i]); !got) return got;
  }
  for (ShardWriter& writer : writers) writer.complete();
  return {};
}

size_t arenas_of(const std::vector<ShardId>& shards) {
  std::set<int> indexes;
  for (const ShardId& shard : shards) indexes.insert(shard.index);
  return indexes.size();
}

}  // namespace

ReplicaCount keep_replicas(const ShardSource& source, Arenas& replicas,
                           const std::shared_ptr<const CancelToken>& cancel_token,
                           const ReplicaEvents& events) {
  ReplicaCount count;
  std::optional<PeerConnection> connection;
  std::vector<ShardId> last;
  int left_out_in_a_row = 0;
  while (!cancel_token->wait(limits::kShardPollInterval)) {
    if (!connection) {
      Result<PeerConnection> opened = PeerConnection::open(source, cancel_token);
      if (!opened) continue;
      connection.emplace(std::move(*opened));
    }
    const Result<std::vector<ShardId>> theirs = connection->names(ShardNamespace::Own);
    if (!theirs) {
      connection.reset();
      continue;
    }
    const std::vector<ShardId> wanted = shards_to_copy(*theirs, shards_in(replicas));
    if (wanted.empty()) continue;
    replicas.set_workers(arenas_of(*theirs));
    Result<std::vector<ShardWriter>> writers = writers_for(wanted, replicas);
    if (!writers) {
      events.on_trouble(writers.error().text);
      continue;
    }
    count.left_out += left_out(last, wanted);
    last = wanted;
    if (copy_all(*connection, ShardNamespace::Own, wanted, *writers)) {
      ++count.copied;
      events.on_copied(wanted.front().label.step);
      left_out_in_a_row = 0;
      continue;
    }
    connection.reset();  // unread bytes of the failed copy are in it
    ++count.left_out;
    if (++left_out_in_a_row == kTooSlow) {
      events.on_trouble(
          "saves follow each other more quickly than they are copied; save less often");
    }
  }
  return count;
}

RestoreResult restore_shards(const ShardSource& source, const OwnRanks& ranks, Arenas& own,
                             const std::shared_ptr<const CancelToken>& cancel_token) {
  if (!shards_to_restore(shards_in(own), ranks).empty()) return {};
  const Instant until = boot_now() + limits::kReplicaFetchTimeout;
  Error last{ErrorKind::System, "it was stopped"};
  do {
    Result<PeerConnection> connection = PeerConnection::open(source, cancel_token);
    if (!connection) {
      last = connection.error();
      continue;
    }
    const Result<std::vector<ShardId>> theirs = connection->names(ShardNamespace::Replicas);
    if (!theirs) {
      last = theirs.error();
      if (last.kind == ErrorKind::Refused || last.kind == ErrorKind::Protocol) break;
      continue;
    }
    const std::vector<ShardId> wanted = shards_to_restore(*theirs, ranks);
    if (wanted.empty()) return {};
    std::vector<ShardId> ours = wanted;
    for (ShardId& shard : ours) shard.index = shard.label.rank - ranks.first;
    Result<std::vector<ShardWriter>> writers = writers_for(ours, own);
    if (!writers) return {writers.error()};
    const Status copied = copy_all(*connection, ShardNamespace::Replicas, wanted, *writers);
    if (!copied) return {copied};
    return {{}, wanted.front().label.step};
  } while (boot_now() < until && !cancel_token->wait(kRestoreRetry));
  return {last};
}

}  // namespace cpprun

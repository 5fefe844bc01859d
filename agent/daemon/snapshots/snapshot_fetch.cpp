#include "agent/daemon/snapshots/snapshot_fetch.hpp"

#include <optional>
#include <vector>

#include "common/endpoint.hpp"
#include "common/limits/snapshots.hpp"
#include "common/machine/clock.hpp"
#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/commit.hpp"

namespace cpprun {
namespace {

using snapshot_files::Draft;
using snapshot_files::File;
using snapshot_files::Manifest;
using snapshot_files::ManifestFile;

constexpr size_t kBlockBytes = 1 << 20;
constexpr Duration kBusyRetry = std::chrono::milliseconds(100);

// The kind of an error decides what comes next. Network: try again; Timeout: the peer serves its
// maximum number of agents, so queue; Protocol: the peer's snapshot is damaged; else give up.
Error damaged(const std::string& text) { return {ErrorKind::Protocol, text}; }

class Fetch {
 public:
  Fetch(snapshot_files::FileLayer& files, const FetchTask& task,
        std::shared_ptr<const CancelToken> cancel_token,
        const std::function<void(uint64_t)>& on_size)
      : files_(files), task_(task), cancel_token_(std::move(cancel_token)), on_size_(on_size) {}

  Fetched run() {
    if (is_here()) return {};  // in a shared folder it may have become visible late
    Status status;
    while (!(status = try_once()) && may_try_again(status.error().kind)) {
      if (cancel_token_->wait(kBusyRetry)) break;
    }
    if (status) return {};
    if (draft_) draft_->discard();
    const Endpoint from{task_.resume.source_address,
                        static_cast<uint16_t>(task_.resume.source_port)};
    return {Error{ErrorKind::System,
                  "the snapshot of step " + std::to_string(task_.resume.snapshot.step) +
                      " could not be fetched from " + to_string(from) + ": " + status.error().text},
            status.error().kind == ErrorKind::Protocol};
  }

 private:
  bool is_here() {
    const std::string name = snapshot_files::snapshot_name(task_.resume.snapshot.step);
    const auto found = snapshot_files::look_at(files_, task_.dir + "/" + name);
    return found.ok() && found->manifest.id == task_.resume.snapshot.id;
  }

  bool may_try_again(ErrorKind kind) {
    const Instant now = boot_now();
    if (kind == ErrorKind::Timeout) {
      if (!queued_since_) queued_since_ = now;
      progress_at_ = now;
      return now - *queued_since_ < task_.queue;
    }
    return kind == ErrorKind::Network && now - progress_at_ < task_.stalls;
  }

  Status try_once() {
    Result<PeerSocket> connection = PeerSocket::connect(
        task_.resume.source_address, static_cast<uint16_t>(task_.resume.source_port), task_.stalls,
        cancel_token_, task_.tls.get());
    if (!connection) return connection.error();
    if (!manifest_) {
      if (Status got = get_manifest(*connection); !got) return got;
    }
    for (; files_done_ < manifest_->files.size(); ++files_done_) {
      Status got = get_file(*connection, manifest_->files[files_done_]);
      if (!got) return got;
    }
    return publish();
  }

  // Requests a file and returns its announced size, at most `most`.
  Result<uint64_t> ask(PeerSocket& connection, const std::string& file, uint64_t most) {
    const snapshot_protocol::Request request{task_.secret, task_.resume.snapshot, file};
    Result<uint64_t> bytes = connection.ask(encode(request), task_.stalls);
    if (!bytes && bytes.error().kind == ErrorKind::Protocol) {
      return Error{ErrorKind::Refused, bytes.error().text};  // the snapshot may be whole
    }
    if (bytes && *bytes > most) return damaged(file + " is larger there than it may be");
    return bytes;
  }

  Status get_manifest(PeerSocket& connection) {
    const std::string name = snapshot_files::kManifestName;
    const Result<uint64_t> bytes = ask(connection, name, limits::kManifestBytes);
    if (!bytes) return bytes.error();
    std::string text;
    const auto take = [&text](uint64_t, std::span<const std::byte> some) -> Status {
      text.append(reinterpret_cast<const char*>(some.data()), some.size());
      return {};
    };
    if (Status got = receive(connection, *bytes, take); !got) return got;
    Result<Manifest> manifest = snapshot_files::decode_manifest(text);
    if (!manifest) return damaged(name + " " + manifest.error().text);
    const bool is_the_one =
        manifest->id == task_.resume.snapshot.id && manifest->step == task_.resume.snapshot.step;
    if (!is_the_one) return damaged(name + " is that of another snapshot");
    bytes_total_ = 0;
    for (const ManifestFile& file : manifest->files) {
      if (file.bytes > limits::kSnapshotFileBytes) return damaged(name + " names impossible sizes");
      bytes_total_ += file.bytes;
    }
    on_size_(bytes_total_);
    Result<Draft> draft =
        Draft::create(files_, task_.dir, manifest->step, snapshot_files::make_nonce());
    if (!draft) return draft.error();
    draft_.emplace(std::move(*draft));
    manifest_ = std::move(*manifest);
    manifest_text_ = std::move(text);
    return {};
  }

  Status get_file(PeerSocket& connection, const ManifestFile& expected) {
    const Result<uint64_t> bytes = ask(connection, expected.name, expected.bytes);
    if (!bytes) return bytes.error();
    if (*bytes != expected.bytes) return damaged(expected.name + " is shorter there");
    const std::string path = draft_->path_of(expected.name);
    if (Status gone = files_.remove_file(path); !gone) return gone;
    Result<std::unique_ptr<File>> file = files_.create(path);
    if (!file) return file.error();
    if (Status room = (*file)->reserve(*bytes); !room) return room;
    uint32_t crc = 0;
    const auto take = [&](uint64_t offset, std::span<const std::byte> some) -> Status {
      crc = archive::crc32(some, crc);
      return (*file)->write_at(offset, some);
    };
    if (Status got = receive(connection, *bytes, take); !got) return got;
    if (crc != expected.crc32) return damaged(expected.name + " has another checksum there");
    if (Status synced = (*file)->sync(); !synced) return synced;
    progress_at_ = boot_now();  // the time of our own disk does not count as a stall
    return {};
  }

  // Calls `take` with full blocks of kBlockBytes, so that direct I/O can write them.
  template <class Take>
  Status receive(PeerSocket& connection, uint64_t bytes, Take take) {
    std::vector<std::byte> block(static_cast<size_t>(std::min<uint64_t>(bytes, kBlockBytes)));
    for (uint64_t done = 0; done < bytes;) {
      const auto most = static_cast<size_t>(std::min<uint64_t>(bytes - done, block.size()));
      for (size_t filled = 0; filled < most;) {
        Result<size_t> size =
            connection.receive(std::span(block).subspan(filled, most - filled), task_.stalls);
        if (!size) return size.error();
        filled += *size;
        progress_at_ = boot_now();
        if (is_too_slow()) return Error{ErrorKind::System, "it comes too slowly"};
      }
      if (Status taken = take(done, std::span(block).first(most)); !taken) return taken;
      done += most;
    }
    return {};
  }

  // Requires a minimum rate: a peer that sends single bytes must not delay the job for ever.
  bool is_too_slow() const {
    const uint64_t all = manifest_ ? bytes_total_ : limits::kManifestBytes;
    const auto seconds = static_cast<int64_t>(all / limits::kSnapshotBytesPerSecond);
    const Duration waited = queued_since_ ? task_.queue : Duration{};
    return boot_now() - began_at_ > task_.stalls * 3 + waited + std::chrono::seconds(seconds);
  }

  Status publish() {
    if (Status wrote = draft_->write_manifest(*manifest_, manifest_text_); !wrote) return wrote;
    if (cancel_token_->is_stopped()) return Error{ErrorKind::System, "it was stopped"};
    Result<std::string> path = draft_->publish();
    return path ? Status() : path.error();
  }

  snapshot_files::FileLayer& files_;
  const FetchTask& task_;
  const std::shared_ptr<const CancelToken> cancel_token_;
  const std::function<void(uint64_t)>& on_size_;
  const Instant began_at_ = boot_now();
  Instant progress_at_ = began_at_;
  std::optional<Instant> queued_since_;
  std::optional<Manifest> manifest_;
  std::string manifest_text_;  // as received
  std::optional<Draft> draft_;
  uint64_t bytes_total_ = 0;
  size_t files_done_ = 0;  // files of the manifest that are complete
};

}  // namespace

Fetched fetch_snapshot(snapshot_files::FileLayer& files, const FetchTask& task,
                       const std::shared_ptr<const CancelToken>& cancel_token,
                       const std::function<void(uint64_t)>& on_size) {
  return Fetch(files, task, cancel_token, on_size).run();
}

}  // namespace cpprun

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
using snapshot_protocol::Answer;

constexpr size_t kBlockBytes = 1 << 20;
constexpr Duration kRetry = std::chrono::milliseconds(100);

// The failure of an attempt, and what to do next.
struct Trouble {
  enum class Then {
    TryAgain,  // the connection broke, or the peer is not ready
    Queue,     // the peer serves its maximum number of agents
    GiveUp,
    Damaged,
  } then = Then::GiveUp;
  std::string text{};
};
using Outcome = std::optional<Trouble>;  // nullopt: success

Trouble again(const Error& error) { return {Trouble::Then::TryAgain, error.text}; }
Trouble give_up(const std::string& text) { return {Trouble::Then::GiveUp, text}; }
Trouble damaged(const std::string& text) { return {Trouble::Then::Damaged, text}; }

class Fetch {
 public:
  Fetch(snapshot_files::FileLayer& files, const FetchTask& task,
        std::shared_ptr<const CancelToken> cancel_token,
        const std::function<void(uint64_t)>& on_size)
      : files_(files), task_(task), cancel_token_(std::move(cancel_token)), on_size_(on_size) {}

  Fetched run() {
    if (is_here()) return {};  // in a shared folder it may have become visible late
    Outcome trouble;
    while ((trouble = try_once()) && may_try_again(*trouble)) {
      if (cancel_token_->wait(kRetry)) break;
    }
    if (!trouble) return {};
    if (draft_) draft_->discard();
    const Endpoint from{task_.resume.source_address,
                        static_cast<uint16_t>(task_.resume.source_port)};
    return {Error{ErrorKind::System,
                  "the snapshot of step " + std::to_string(task_.resume.snapshot.step) +
                      " could not be fetched from " + to_string(from) + ": " + trouble->text},
            trouble->then == Trouble::Then::Damaged};
  }

 private:
  bool is_here() {
    const std::string name = snapshot_files::snapshot_name(task_.resume.snapshot.step);
    const auto found = snapshot_files::look_at(files_, task_.dir + "/" + name);
    return found.ok() && found->manifest.id == task_.resume.snapshot.id;
  }

  bool may_try_again(const Trouble& trouble) {
    const Instant now = boot_now();
    if (trouble.then == Trouble::Then::Queue) {
      if (!queued_since_) queued_since_ = now;
      progress_at_ = now;
      return now - *queued_since_ < task_.queue;
    }
    return trouble.then == Trouble::Then::TryAgain && now - progress_at_ < task_.stalls;
  }

  Outcome try_once() {
    Result<PeerSocket> connection = PeerSocket::connect(
        task_.resume.source_address, static_cast<uint16_t>(task_.resume.source_port), task_.stalls,
        cancel_token_);
    if (!connection) return again(connection.error());
    if (!manifest_) {
      if (Outcome trouble = get_manifest(*connection)) return trouble;
    }
    for (; files_done_ < manifest_->files.size(); ++files_done_) {
      if (Outcome trouble = get_file(*connection, manifest_->files[files_done_])) return trouble;
    }
    return publish();
  }

  // Requests a file and returns its announced size in `bytes`, at most `most`.
  Outcome ask(PeerSocket& connection, const std::string& file, uint64_t most, uint64_t& bytes) {
    const snapshot_protocol::Request request{task_.secret, task_.resume.snapshot, file};
    if (Status sent = connection.send(snapshot_protocol::encode(request), task_.stalls); !sent) {
      return again(sent.error());
    }
    Result<std::string> said = connection.receive_line(task_.stalls);
    if (!said) return again(said.error());
    Result<Answer> answer = snapshot_protocol::decode_answer(*said);
    if (!answer) return give_up(answer.error().text);
    switch (answer->kind) {
      case Answer::Kind::Busy: return Trouble{Trouble::Then::Queue, answer->why};
      case Answer::Kind::Secret: return Trouble{Trouble::Then::TryAgain, answer->why};
      case Answer::Kind::No: return give_up(answer->why);
      case Answer::Kind::Bytes: break;
    }
    bytes = answer->bytes;
    if (bytes > most) return damaged(file + " is larger there than it may be");
    return {};
  }

  Outcome get_manifest(PeerSocket& connection) {
    uint64_t bytes = 0;
    const std::string name = snapshot_files::kManifestName;
    if (Outcome trouble = ask(connection, name, limits::kManifestBytes, bytes)) return trouble;
    std::string text;
    const auto take = [&text](uint64_t, std::span<const std::byte> some) -> Outcome {
      text.append(reinterpret_cast<const char*>(some.data()), some.size());
      return {};
    };
    if (Outcome trouble = receive(connection, bytes, take)) return trouble;
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
    if (!draft) return give_up(draft.error().text);
    draft_.emplace(std::move(*draft));
    manifest_ = std::move(*manifest);
    return {};
  }

  Outcome get_file(PeerSocket& connection, const ManifestFile& expected) {
    uint64_t bytes = 0;
    if (Outcome trouble = ask(connection, expected.name, expected.bytes, bytes)) return trouble;
    if (bytes != expected.bytes) return damaged(expected.name + " is shorter there");
    const std::string path = draft_->path_of(expected.name);
    if (Status gone = files_.remove_file(path); !gone) return give_up(gone.error().text);
    Result<std::unique_ptr<File>> file = files_.create(path);
    if (!file) return give_up(file.error().text);
    if (Status room = (*file)->reserve(bytes); !room) return give_up(room.error().text);
    uint32_t crc = 0;
    const auto take = [&](uint64_t offset, std::span<const std::byte> some) -> Outcome {
      crc = archive::crc32(some, crc);
      if (Status wrote = (*file)->write_at(offset, some); !wrote) {
        return give_up(wrote.error().text);
      }
      return {};
    };
    if (Outcome trouble = receive(connection, bytes, take)) return trouble;
    if (crc != expected.crc32) return damaged(expected.name + " has another checksum there");
    if (Status synced = (*file)->sync(); !synced) return give_up(synced.error().text);
    progress_at_ = boot_now();  // the time of our own disk does not count as a stall
    return {};
  }

  // Calls `take` with full blocks of kBlockBytes, so that direct I/O can write them.
  template <class Take>
  Outcome receive(PeerSocket& connection, uint64_t bytes, Take take) {
    std::vector<std::byte> block(static_cast<size_t>(std::min<uint64_t>(bytes, kBlockBytes)));
    for (uint64_t done = 0; done < bytes;) {
      const auto most = static_cast<size_t>(std::min<uint64_t>(bytes - done, block.size()));
      for (size_t filled = 0; filled < most;) {
        Result<size_t> size =
            connection.receive(std::span(block).subspan(filled, most - filled), task_.stalls);
        if (!size) return again(size.error());
        filled += *size;
        progress_at_ = boot_now();
        if (is_too_slow()) return give_up("it comes too slowly");
      }
      if (Outcome trouble = take(done, std::span<const std::byte>(block).first(most))) {
        return trouble;
      }
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

  Outcome publish() {
    if (Status wrote = draft_->write_manifest(*manifest_); !wrote) {
      return give_up(wrote.error().text);
    }
    if (cancel_token_->is_stopped()) return give_up("it was stopped");
    Result<std::string> path = draft_->publish();
    if (!path) return give_up(path.error().text);
    return {};
  }

  snapshot_files::FileLayer& files_;
  const FetchTask& task_;
  const std::shared_ptr<const CancelToken> cancel_token_;
  const std::function<void(uint64_t)>& on_size_;
  const Instant began_at_ = boot_now();
  Instant progress_at_ = began_at_;
  std::optional<Instant> queued_since_;
  std::optional<Manifest> manifest_;
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

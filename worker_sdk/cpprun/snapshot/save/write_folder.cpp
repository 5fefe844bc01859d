// The folder form: all ranks that see the folder write <dir>/step-<n>/ together.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>

#include "common/text.hpp"
#include "cpprun/snapshot/outcome_codec.hpp"
#include "cpprun/snapshot/save/writing.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/folders/commit.hpp"
#include "snapshot_files/folders/manifest.hpp"
#include "snapshot_files/folders/prune.hpp"

namespace cpprun::snapshot {
namespace {

using snapshot_files::Draft;
using snapshot_files::File;
using snapshot_files::Manifest;

std::string now_text() {
  const time_t now = ::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

uint32_t fingerprint_of(const Staged& staged) {
  std::string all;
  for (const StagedFile& file : staged.shared) {
    all += file.name + '\n';
    for (const auto& each : file.storages)
      all += each.name + ' ' + std::to_string(each.bytes) + '\n';
  }
  return archive::crc32(archive::bytes_of(all));
}

class FolderWriting {
 public:
  FolderWriting(const Staged& staged, const WriteContext& context, StoreChannel& channel)
      : staged_(staged),
        context_(context),
        channel_(channel),
        is_leader_(context.rank == leader()) {
    for (const StagedFile& file : staged.shared) plans_.emplace_back(file.storages);
  }

  Result<std::string> run() {
    if (context_.rank == 0) {
      const std::string id = snapshot_files::make_nonce() + snapshot_files::make_nonce();
      static_cast<void>(channel_.set("id", encode(Result<std::string>(id))));
    }
    const Result<std::string> own = write_own_shards();
    Status sent = channel_.set(key("done", context_.rank), encode(own));
    if (is_leader_) {
      const Status finished = finish(own);
      sent = channel_.set(key("ready", context_.rank), encode(finished));
    }
    if (context_.rank == 0) sent = channel_.set("decision", encode(decide()));
    const Result<std::string> decision = decode_outcome(channel_.get("decision"), 0);
    if (is_leader_) publish(decision);
    if (!decision) return decision.error();
    Result<std::string> path = published();
    if (path && is_leader_) prune();
    return path;
  }

 private:
  static std::string key(const char* what, int rank) { return what + ("/" + std::to_string(rank)); }
  int leader() const { return context_.group.leader(); }

  Result<std::string> write_own_shards() {
    if (const Status opened = open_draft(); !opened) return opened.error();
    Done done{.parts = {}, .fingerprint = fingerprint_of(staged_)};
    for (size_t i = 0; i < staged_.shared.size(); ++i) {
      Result<std::vector<uint32_t>> crcs = write_parts(i);
      if (!crcs) return crcs.error();
      done.parts.push_back(std::move(*crcs));
    }
    const Result<archive::Written> written = write_rank_file();
    if (!written) return written.error();
    done.own_bytes = written->bytes;
    done.own_crc32 = written->crc32;
    return encode(done);
  }

  Status open_draft() {
    auto& files = *context_.files;
    if (is_leader_) {
      const std::string nonce = snapshot_files::make_nonce();
      Status status = start_draft(Draft::create(files, context_.place, staged_.step, nonce), true);
      const auto outcome =
          status ? Result<std::string>(nonce) : Result<std::string>(status.error());
      const Status sent = channel_.set(key("draft", leader()), encode(outcome));
      return status ? sent : status;
    }
    const auto nonce = decode_outcome(channel_.get(key("draft", leader())), leader());
    if (!nonce) return nonce.error();
    return start_draft(Draft::join(files, context_.place, staged_.step, *nonce), false);
  }

  Status start_draft(Result<Draft> draft, bool is_new) {
    if (!draft) return draft.error();
    draft_.emplace(std::move(*draft));
    for (size_t i = 0; i < staged_.shared.size(); ++i) {
      const std::string path = draft_->path_of(staged_.shared[i].name);
      auto file = is_new ? context_.files->create(path) : context_.files->open_to_write(path);
      if (!file) return file.error();
      if (is_new) {
        if (Status reserved = (*file)->reserve(plans_[i].tail_at()); !reserved) return reserved;
      }
      open_.push_back(std::move(*file));
    }
    return {};
  }

  Result<std::vector<uint32_t>> write_parts(size_t i) {
    const StagedFile& file = staged_.shared[i];
    std::vector<archive::Part> mine;
    for (size_t j = 0; j < file.parts.size(); ++j) {
      const ShardRange& part = file.parts[j];
      if (part.piece != staged_.share.written) continue;
      mine.push_back({plans_[i].find(part.storage), part.from, {file.mine[j], file.crc32s[j]}});
    }
    auto crcs = archive::write_parts(*open_[i], plans_[i], mine);
    if (!crcs) return crcs;
    if (const Status synced = open_[i]->sync(); !synced) return synced.error();
    return crcs;
  }

  Result<archive::Written> write_rank_file() {
    auto file = context_.files->create(draft_->path_of(staged_.own.name));
    if (!file) return file.error();
    auto written = archive::write_file(**file, staged_.own.value, [&](const std::string& name) {
      return staged_.own.whole(name);
    });
    if (!written) return written.error();
    if (const Status synced = (*file)->sync(); !synced) return synced.error();
    return written;
  }

  // The leader of a group calls this and the functions up to prune().
  Status finish(const Result<std::string>& own) {
    std::vector<Done> all;
    Status failed = own ? Status() : own.error();
    for (const int member : context_.group.members) {
      auto outcome =
          member == context_.rank ? own : decode_outcome(channel_.get(key("done", member)), member);
      Result<Done> done = outcome ? decode_done(*outcome) : outcome.error();
      if (done && done->fingerprint != fingerprint_of(staged_)) {
        done = Error{ErrorKind::BadValue, "rank " + std::to_string(member) + " and rank " +
                                              std::to_string(context_.rank) +
                                              " track different tensors"};
      }
      if (!done && failed) failed = done.error();
      if (done) all.push_back(std::move(*done));
    }
    if (!failed) return failed;
    Manifest manifest;
    if (Status described = describe(manifest); !described) return described;
    for (size_t i = 0; i < staged_.shared.size(); ++i) {
      if (Status closed = finish_file(i, all, manifest); !closed) return closed;
    }
    for (size_t i = 0; i < all.size(); ++i) {
      manifest.files.push_back({snapshot_files::rank_file_name(context_.group.members[i]),
                                all[i].own_bytes, all[i].own_crc32});
    }
    return draft_->write_manifest(manifest);
  }

  Status finish_file(size_t i, const std::vector<Done>& all, Manifest& manifest) {
    const StagedFile& file = staged_.shared[i];
    std::map<std::string, uint32_t, std::less<>> of_storage;
    std::set<std::string_view> split;  // storages that several ranks have written
    std::vector<size_t> next(all.size(), 0);
    const std::vector<int> writers = context_.group.writers();
    for (const ShardRange& part : file.parts) {
      const int rank = writers[static_cast<size_t>(part.piece)];
      const auto writer = static_cast<size_t>(context_.group.place_of(rank));
      const auto& crcs = all[writer].parts;
      if (i >= crcs.size() || next[writer] >= crcs[i].size()) {
        return Error{ErrorKind::Protocol, "a rank has written less than its share"};
      }
      const uint32_t crc = crcs[i][next[writer]++];
      const auto [entry, is_first] = of_storage.emplace(part.storage, crc);
      if (is_first) continue;
      entry->second = archive::crc32_combine(entry->second, crc, part.bytes);
      split.insert(part.storage);
    }
    std::vector<uint32_t> crcs;
    for (const auto& place : plans_[i].places()) crcs.push_back(of_storage.at(place.name));
    const auto written = archive::write_rest(*open_[i], plans_[i], file.value, crcs, &split);
    if (!written) return written.error();
    if (Status synced = open_[i]->sync(); !synced) return synced;
    manifest.files.push_back({file.name, written->bytes, written->crc32});
    return {};
  }

  Status describe(Manifest& manifest) {
    const auto id = decode_outcome(channel_.get("id"), 0);
    if (!id) return id.error();
    manifest.id = *id;
    manifest.step = staged_.step;
    manifest.epoch = staged_.epoch;
    manifest.world_size = context_.world;
    manifest.run_id = context_.run_id;
    manifest.round = context_.round;
    manifest.torch = context_.torch;
    manifest.cpprun = context_.cpprun;
    manifest.saved_at = now_text();
    for (int rank = 0; rank < context_.world; ++rank) {
      if (context_.group.place_of(rank) < 0) {
        manifest.elsewhere.push_back(snapshot_files::rank_file_name(rank));
      }
    }
    return {};
  }

  void publish(const Result<std::string>& decision) {
    open_.clear();
    Result<std::string> path = decision;
    if (decision) path = draft_->publish();
    if (!path && draft_) draft_->discard();
    draft_.reset();
    static_cast<void>(channel_.set(key("published", context_.rank), encode(path)));
  }

  // Called only after all groups have published: before that, the snapshot to remove may be the
  // only one that all groups have. The next save tries again what cannot be removed now.
  void prune() {
    const snapshot_files::Pruned pruned =
        snapshot_files::prune(*context_.files, context_.place, context_.keep, staged_.step);
    if (pruned.set_aside.empty()) return;
    const std::string paths = text::join(pruned.set_aside, ", ");
    std::fprintf(stderr,
                 "cpprun: the newest snapshot is of step %lld now; those of later steps are set "
                 "aside, and are not chosen: %s\n",
                 static_cast<long long>(staged_.step), paths.c_str());
  }

  // Of rank 0.
  Status decide() {
    Status failed;
    for (const int each : context_.group.leaders) {
      const auto ready = decode_outcome(channel_.get(key("ready", each)), each);
      if (!ready && failed) failed = ready.error();
    }
    return failed ? context_.request_commit(staged_.step) : failed;
  }

  Result<std::string> published() {
    Result<std::string> path = std::string();
    for (const int each : context_.group.leaders) {
      auto outcome = decode_outcome(channel_.get(key("published", each)), each);
      if (!outcome) return outcome;
      if (each == leader()) path = std::move(outcome);
    }
    return path;
  }

  const Staged& staged_;
  const WriteContext& context_;
  StoreChannel& channel_;
  const bool is_leader_;
  std::vector<archive::Plan> plans_;  // of the shared files
  std::vector<std::unique_ptr<File>> open_;
  std::optional<Draft> draft_;
};

}  // namespace

Result<std::string> write_folder(const Staged& staged, const WriteContext& context,
                                 StoreChannel& channel) {
  return FolderWriting(staged, context, channel).run();
}

}  // namespace cpprun::snapshot

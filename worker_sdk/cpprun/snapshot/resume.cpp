// Snapshot::Impl: chooses the snapshot to resume from and loads it.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "cpprun/dist/objects.hpp"
#include "cpprun/snapshot/file_storages.hpp"
#include "cpprun/snapshot/impl.hpp"
#include "cpprun/snapshot/outcome_codec.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/snapshot_notice.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/pickle/writer.hpp"

namespace cpprun {
namespace {

using archive::TensorFile;
using snapshot::Candidate;
using snapshot::Candidates;
using snapshot::Loaded;
using snapshot::LoadedFile;
using snapshot_files::real_files;
using Where = snapshot::Candidate::Where;

constexpr const char* kPrevious = ".prev";
constexpr int64_t kUnknownStep = INT64_MAX;

LoadedFile loaded_file(TensorFile file) {
  const auto shared = std::make_shared<const TensorFile>(std::move(file));
  return {shared->value(), std::make_shared<snapshot::FileStorages>(shared)};
}

// Identifies a file by its structure and the checksums of its storages, without reading those.
std::string fingerprint(const TensorFile& file) {
  std::string all = pickle::write(file.value());
  for (const auto& each : archive::storages_of(file.value())) {
    all += each.name + ' ' + std::to_string(file.storage_crc32(each.name)) + '\n';
  }
  return archive::crc32_text(archive::crc32(archive::bytes_of(all)));
}

int64_t step_of(const TensorFile& file) {
  const auto* dict = file.value().get_if<pickle::Dict>();
  const pickle::Value* held = dict == nullptr ? nullptr : dict->find(snapshot::kStepKey);
  const auto* step = held == nullptr ? nullptr : held->get_if<int64_t>();
  return step == nullptr ? 0 : *step;
}

Candidate of_folder(const snapshot_files::FoundSnapshot& found, Where where) {
  return {where, found.step, found.manifest.id, "", snapshot_files::snapshot_name(found.step)};
}

std::string memory_id(const snapshot_files::SlotLabel& label) {
  return std::to_string(label.round) + "/" + std::to_string(label.world_size);
}

bool is_same_path(const std::string& a, const std::string& b) {
  std::error_code ignored;  // paths that do not exist are compared by name
  return std::filesystem::weakly_canonical(a, ignored) ==
         std::filesystem::weakly_canonical(b, ignored);
}

}  // namespace

// The launcher chooses in its own folder only; for a Snapshot in another one this is empty.
std::string Snapshot::Impl::launchers_choice() const {
  const auto& environment = worker::environment();
  if (!environment) return place;
  const std::string& looks_at = environment->snapshot_dir;
  const bool is_its = looks_at.empty() || is_same_path(looks_at, place);
  return is_its ? environment->resume_from : "";
}

Candidates Snapshot::Impl::candidates() {
  Candidates all;
  const bool is_near = std::all_of(group().members.begin(), group().members.end(), [&](int rank) {
    return neighbours.local_rank_of(rank).has_value();
  });
  if (options.in_memory && is_near) {
    for (const auto& label : memory.found(ranks.rank(), ranks.world())) {
      all.push_back({Where::InMemorySnapshot, label.step, memory_id(label), "",
                     "step " + std::to_string(label.step) + " in memory"});
    }
  }
  if (is_single) {
    // The previous file only replaces a damaged one: a user who removes the file starts anew.
    const bool is_there = sent.contains(place) || real_files().exists(place);
    for (const std::string& path : {place, place + kPrevious}) {
      if (!is_there) break;
      if (!sent.contains(path) && !real_files().exists(path)) continue;
      const auto file = open_single(path);
      if (file)
        all.push_back({Where::Folder, step_of(*file), fingerprint(*file), "", path});
      else
        all.push_back({Where::Folder, kUnknownStep, "", file.error().text, path});
    }
    return all;
  }
  const std::string chosen = launchers_choice();
  if (!chosen.empty()) {
    const auto found = snapshot_files::look_at(real_files(), chosen);
    if (found) all.push_back(of_folder(*found, Where::Chosen));
  }
  const auto catalog = snapshot_files::scan(real_files(), place);
  if (!catalog) return all;
  for (const auto& each : catalog->complete) all.push_back(of_folder(each, Where::Folder));
  for (const auto& each : catalog->incomplete) {
    all.push_back(
        {Where::Folder, each.step, "", each.why, snapshot_files::snapshot_name(each.step)});
  }
  return all;
}

Result<TensorFile> Snapshot::Impl::open_single(const std::string& path) const {
  const auto found = sent.find(path);
  if (found == sent.end()) return snapshot_files::open_tensor_file(real_files(), path);
  return TensorFile::open(
      std::make_shared<archive::MemorySource>(archive::bytes_of(found->second), path));
}

// If only some ranks see the file: rank 0's goes to all.
bool Snapshot::Impl::share_single_files(const std::vector<Candidates>& of_ranks) {
  const auto on_disk = [](Candidates all) {
    std::erase_if(all, [](const Candidate& each) { return each.where == Where::InMemorySnapshot; });
    return all;
  };
  const bool is_shared = std::all_of(of_ranks.begin(), of_ranks.end(), [&](const Candidates& each) {
    return on_disk(each) == on_disk(of_ranks[0]);
  });
  if (!is_single || is_shared) return false;
  for (const std::string& path : {place, place + kPrevious}) {
    std::vector<std::string> bytes(1);
    if (ranks.is_first()) {
      const auto file = real_files().open_to_read(path, true);
      const auto size = file ? (*file)->size() : file.error();
      if (size) {
        bytes[0].resize(*size);
        const Status read =
            (*file)->read_at(0, std::as_writable_bytes(std::span(bytes[0].data(), *size)));
        if (!read) bytes[0].clear();
      }
    }
    dist::broadcast_bytes(bytes, "snapshot file", 0);
    if (!ranks.is_first() && !bytes[0].empty()) sent[path] = std::move(bytes[0]);
  }
  return true;
}

Result<Loaded> Snapshot::Impl::load_memory(const Candidate& candidate) {
  for (const auto& label : memory.found(ranks.rank(), ranks.world())) {
    if (label.step != candidate.step || memory_id(label) != candidate.id) continue;
    const Status verified = memory.verify(label);
    if (!verified) return verified.error();
    return memory.load(label, group(), neighbours);
  }
  return Error{ErrorKind::System, "the copy in memory is gone"};
}

// All ranks of a group read the shared files; each verifies a part of them.
Result<Loaded> Snapshot::Impl::load_folder(const std::string& path) {
  const auto found = snapshot_files::look_at(real_files(), path);
  if (!found) return found.error();
  const size_t members = group().members.size();
  const auto turn = static_cast<size_t>(group().place_of(ranks.rank()));
  const std::string own = snapshot_files::rank_file_name(ranks.rank());
  Loaded loaded;
  size_t number = 0;
  for (const auto& each : found->manifest.files) {
    const bool is_shared = !each.name.starts_with("rank-");
    if (!is_shared && each.name != own) continue;
    auto file = snapshot_files::open_tensor_file(real_files(), path + "/" + each.name);
    if (!file) return file.error();
    if (!is_shared || number++ % members == turn) {
      const Status verified = file->verify();
      if (!verified) return verified.error();
    }
    loaded[each.name] = loaded_file(std::move(*file));
  }
  return loaded;
}

Result<Loaded> Snapshot::Impl::load_single(const std::string& path) {
  auto file = open_single(path);
  if (!file) return file.error();
  if (ranks.is_first()) {
    const Status verified = file->verify();
    if (!verified) return verified.error();
  }
  Loaded loaded;
  loaded[snapshot::kSingleName] = loaded_file(std::move(*file));
  return loaded;
}

std::string Snapshot::Impl::path_of(const Candidate& candidate) const {
  if (candidate.where == Where::InMemorySnapshot) return "";
  if (is_single) return candidate.name;
  if (candidate.where == Where::Chosen) return worker::environment()->resume_from;
  return place + "/" + candidate.name;
}

Result<Loaded> Snapshot::Impl::load(const Candidate& candidate) {
  if (candidate.where == Where::InMemorySnapshot) return load_memory(candidate);
  return is_single ? load_single(path_of(candidate)) : load_folder(path_of(candidate));
}

Resumed Snapshot::Impl::resume() {
  saver.wait();
  // Frees the bytes of the received files when resume() returns or throws.
  struct Forgetting {
    Impl& impl;
    ~Forgetting() { impl.sent.clear(); }
  } const forgetting{*this};
  std::vector<Candidates> of_ranks = gather_candidates();
  if (share_single_files(of_ranks)) of_ranks = gather_candidates();
  const snapshot::Common common = snapshot::common(of_ranks);
  Candidates damaged = common.damaged;
  std::set<std::string> failed;  // ids
  for (const Candidate& each : common.loadable) {
    if (failed.contains(each.id)) continue;
    const Result<Loaded> loaded = load(each);
    const auto outcomes = ranks.gather(snapshot::encode(loaded ? Status() : loaded.error()));
    std::string why;
    for (size_t rank = 0; rank < outcomes.size() && why.empty(); ++rank) {
      const auto outcome = snapshot::decode_outcome(outcomes[rank], static_cast<int>(rank));
      if (!outcome) why = outcome.error().text;
    }
    if (why.empty()) {
      std::erase_if(damaged, [&](const Candidate& other) { return other.step < each.step; });
      report_damaged(damaged, each.name);
      report_to_agent(&each);
      return apply(each, *loaded);
    }
    failed.insert(each.id);
    damaged.push_back(each);
    damaged.back().why = why;
  }
  report_damaged(damaged, "");
  report_to_agent(nullptr);
  return {};
}

// Every rank reports to the agent of its node. fell_back: the launcher chose a folder, and training
// resumed from another snapshot or from none. A copy of the chosen one (same id) is no fallback.
void Snapshot::Impl::report_to_agent(const Candidate* loaded) const {
  const std::string chosen = worker::environment() && !is_single ? launchers_choice() : "";
  bool fell_back = !chosen.empty() && (loaded == nullptr || loaded->where == Where::Folder);
  if (fell_back && loaded != nullptr) {
    const auto found = snapshot_files::look_at(real_files(), chosen);
    fell_back = !found || found->manifest.id != loaded->id;
  }
  worker::report_resumed(loaded == nullptr ? -1 : loaded->step,
                         loaded == nullptr ? "" : path_of(*loaded), fell_back);
}

std::vector<Candidates> Snapshot::Impl::gather_candidates() {
  std::vector<Candidates> of_ranks;
  for (const std::string& text : ranks.gather(snapshot::encode(candidates()))) {
    Result<Candidates> own = snapshot::decode(text);
    if (!own) throw std::runtime_error(own.error().text);
    of_ranks.push_back(std::move(*own));
  }
  return of_ranks;
}

void Snapshot::Impl::report_damaged(const Candidates& damaged, const std::string& instead) const {
  if (damaged.empty() || !ranks.is_first()) return;
  std::string text;
  for (const Candidate& each : damaged) {
    text += (text.empty() ? "" : "; ") + each.name + " can't be used (" + each.why + ")";
  }
  const std::string count = damaged.size() == 1 ? "one" : std::to_string(damaged.size());
  text += instead.empty() ? "; there is no other: training begins anew"
                          : "; fell back " + count + " to " + instead;
  std::fprintf(stderr, "cpprun: %s\n", text.c_str());
}

Resumed Snapshot::Impl::apply(const Candidate& candidate, const Loaded& loaded) {
  const snapshot::Applied applied = snapshot::apply(tracked, is_single, ranks.rank(), loaded);
  seconds_before = applied.counters.seconds;
  started_at = std::chrono::steady_clock::now();
  saved_at = seconds();
  saved_step = candidate.step;
  if (ranks.is_first() && !applied.missing.empty()) {
    std::string names;
    for (const std::string& name : applied.missing) names += (names.empty() ? "" : ", ") + name;
    std::fprintf(stderr, "cpprun: %s has nothing of: %s; it begins as it is\n",
                 candidate.name.c_str(), names.c_str());
  }
  const bool keeps_own = std::any_of(tracked.begin(), tracked.end(),
                                     [](const auto& each) { return each.is_per_rank; });
  const bool is_new_rank = ranks.any(keeps_own && applied.lacks_rank && applied.is_marked);
  if (is_new_rank && ranks.is_first()) {
    std::fprintf(stderr,
                 "cpprun: %s was saved by another number of ranks than %d: those that are new "
                 "have random states of their own, derived from the step\n",
                 candidate.name.c_str(), ranks.world());
  }
  const bool is_memory = candidate.where == Where::InMemorySnapshot;
  return {is_memory ? SnapshotSource::InMemorySnapshot : SnapshotSource::Disk, candidate.step,
          path_of(candidate)};
}

}  // namespace cpprun

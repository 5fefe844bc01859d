#include "cpprun/snapshot/snapshot_loader.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "cpprun/dist/objects.hpp"
#include "cpprun/snapshot/outcome_codec.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/snapshot_notice.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/prune.hpp"
#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun::snapshot {
namespace {

using archive::TensorFile;
using snapshot_files::Manifest;
using snapshot_files::real_files;
using Where = Candidate::Where;

constexpr const char* kPrevious = ".prev";
constexpr int64_t kUnknownStep = INT64_MAX;

// Identifies a file by its structure and the checksums of its storages, without reading those.
std::string fingerprint(const TensorFile& file) {
  std::string all = pickle::write(file.value());
  for (const auto& each : archive::storages_of(file.value())) {
    all += each.name + ' ' + std::to_string(file.storage_crc32(each.name)) + '\n';
  }
  return archive::crc32_text(archive::crc32(archive::bytes_of(all)));
}

int64_t step_of(const TensorFile& file) {
  const auto* step = file.value().find_as<int64_t>(kStepKey);
  return step == nullptr ? 0 : *step;
}

Candidate of_folder(const snapshot_files::FoundSnapshot& found, Where where) {
  return {where, found.step, found.manifest.id, "", snapshot_files::snapshot_name(found.step)};
}

bool is_same_path(const std::string& a, const std::string& b) {
  std::error_code ignored;  // paths that do not exist are compared by name
  return std::filesystem::weakly_canonical(a, ignored) ==
         std::filesystem::weakly_canonical(b, ignored);
}

// Identifies a save in memory.
std::string memory_id(const snapshot_files::SlotLabel& label) {
  return std::to_string(label.round) + "/" + std::to_string(label.world_size) + "/" +
         std::to_string(label.step);
}

// What the round of a snapshot that a user has marked as bad has saved later is bad too.
bool spoils(const Manifest& bad, const snapshot_files::SlotLabel& label) {
  const std::string& run_id = worker::environment_or_default().run_id;
  return bad.run_id == run_id && bad.round == label.round && bad.step <= label.step;
}

LoadedFile loaded_file(TensorFile file) {
  const auto shared = std::make_shared<const TensorFile>(std::move(file));
  return {shared->value(), std::make_shared<FileStorages>(shared)};
}

}  // namespace

std::vector<Candidates> SnapshotLoader::find() {
  std::vector<Candidates> of_ranks = gather();
  return share_single_files(of_ranks) ? gather() : of_ranks;
}

std::vector<Candidates> SnapshotLoader::gather() {
  std::vector<Candidates> of_ranks;
  for (const std::string& text : comm_.gather(encode(own()))) {
    Result<Candidates> of_rank = decode(text);
    if (!of_rank) throw std::runtime_error(of_rank.error().text);
    of_ranks.push_back(std::move(*of_rank));
  }
  return of_ranks;
}

std::string SnapshotLoader::launchers_choice() const {
  const auto& environment = worker::environment();
  if (!environment) return location_.path;
  const std::string& looks_at = environment->snapshot_dir;
  const bool is_its = looks_at.empty() || is_same_path(looks_at, location_.path);
  return is_its ? environment->resume_from : "";
}

Candidates SnapshotLoader::own() {
  Candidates all;
  add_in_memory(all);
  location_.is_single_file ? add_single_files(all) : add_folders(all);
  // The step of a damaged file is unknown.
  std::erase_if(
      all, [&](const Candidate& each) { return each.why.empty() && each.step >= before_step_; });
  return all;
}

void SnapshotLoader::add_in_memory(Candidates& all) {
  if (!group_.get().serves_memory() || !uses_memory_) return;
  const auto labels = memory_.found(comm_.rank(), comm_.world());
  if (labels.empty()) return;
  const std::vector<Manifest> bad = location_.is_single_file
                                        ? std::vector<Manifest>()
                                        : snapshot_files::marked_bad(real_files(), location_.path);
  for (const auto& label : labels) {
    if (std::ranges::any_of(bad, [&](const Manifest& each) { return spoils(each, label); })) {
      continue;
    }
    all.push_back({Where::InMemorySnapshot, label.step, memory_id(label), "",
                   "step " + std::to_string(label.step) + " in memory"});
  }
}

// Adds the previous file only while the newest one exists: a user removes the newest file to start
// training anew.
void SnapshotLoader::add_single_files(Candidates& all) const {
  const auto is_there = [&](const std::string& path) {
    return received_.contains(path) || real_files().exists(path);
  };
  if (!is_there(location_.path)) return;
  for (const std::string& path : {location_.path, location_.path + kPrevious}) {
    if (!is_there(path)) continue;
    const auto file = open_single(path);
    all.push_back(file ? Candidate{Where::Folder, step_of(*file), fingerprint(*file), "", path}
                       : Candidate{Where::Folder, kUnknownStep, "", file.error().text, path});
  }
}

void SnapshotLoader::add_folders(Candidates& all) const {
  const std::string chosen = launchers_choice();
  if (!chosen.empty()) {
    const auto found = snapshot_files::look_at(real_files(), chosen);
    if (found) all.push_back(of_folder(*found, Where::Chosen));
  }
  const auto catalog = snapshot_files::scan(real_files(), location_.path);
  if (!catalog) {
    all.push_back({Where::Folder, kUnknownStep, "", catalog.error().text, location_.path});
    return;
  }
  for (const auto& each : catalog->complete) all.push_back(of_folder(each, Where::Folder));
  for (const auto& each : catalog->incomplete) {
    all.push_back(
        {Where::Folder, each.step, "", each.why, snapshot_files::snapshot_name(each.step)});
  }
}

Result<TensorFile> SnapshotLoader::open_single(const std::string& path) const {
  const auto found = received_.find(path);
  if (found == received_.end()) return snapshot_files::open_tensor_file(real_files(), path);
  return TensorFile::open(
      std::make_shared<archive::MemorySource>(archive::bytes_of(found->second), path));
}

// Returns false if every rank sees the same files as rank 0.
bool SnapshotLoader::share_single_files(const std::vector<Candidates>& of_ranks) {
  const auto on_disk = [](Candidates all) {
    std::erase_if(all, [](const Candidate& each) { return each.where == Where::InMemorySnapshot; });
    return all;
  };
  const bool is_shared = std::ranges::all_of(
      of_ranks, [&](const Candidates& each) { return on_disk(each) == on_disk(of_ranks[0]); });
  if (!location_.is_single_file || is_shared) return false;
  for (const std::string& path : {location_.path, location_.path + kPrevious}) {
    std::vector<std::string> bytes(1);
    if (comm_.is_first()) {
      const auto file = real_files().open_to_read(path, true);
      const auto size = file ? (*file)->size() : file.error();
      auto text = size ? (*file)->read_text(0, *size) : size.error();
      if (text) bytes[0] = std::move(*text);
    }
    dist::broadcast_bytes(bytes, 0);
    if (!comm_.is_first() && !bytes[0].empty()) received_[path] = std::move(bytes[0]);
  }
  return true;
}

std::optional<LoadedSnapshot> SnapshotLoader::load() {
  const Common common = snapshot::common(find());
  Candidates damaged = common.damaged;
  std::set<std::string> failed;  // ids
  for (const Candidate& each : common.loadable) {
    if (failed.contains(each.id)) continue;
    Result<Loaded> loaded = load(each);
    const std::string why = failure_of_any(loaded);
    if (why.empty()) {
      std::erase_if(damaged, [&](const Candidate& other) { return other.step < each.step; });
      report_damaged(damaged, each.name);
      report_to_agent(&each);
      return LoadedSnapshot{each, path_of(each), std::move(*loaded), saved_ranks_};
    }
    failed.insert(each.id);
    damaged.push_back(each);
    damaged.back().why = why;
  }
  report_damaged(damaged, "");
  report_to_agent(nullptr);
  return std::nullopt;
}

std::string SnapshotLoader::failure_of_any(const Result<Loaded>& own) const {
  const auto outcomes = comm_.gather(encode(own ? Status() : own.error()));
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    const auto outcome = decode_outcome(outcomes[rank], static_cast<int>(rank));
    if (!outcome && !outcome.error().text.empty()) return outcome.error().text;
  }
  return "";
}

Result<Loaded> SnapshotLoader::load(const Candidate& candidate) {
  if (candidate.where == Where::InMemorySnapshot) return load_memory(candidate);
  return location_.is_single_file ? load_single(path_of(candidate))
                                  : load_folder(path_of(candidate));
}

Result<Loaded> SnapshotLoader::load_memory(const Candidate& candidate) {
  for (const auto& label : memory_.found(comm_.rank(), comm_.world())) {
    if (label.step != candidate.step || memory_id(label) != candidate.id) continue;
    if (Status verified = memory_.verify(label); !verified) return verified.error();
    saved_ranks_ = label.world_size;
    return memory_.load(label, group_.get(), comm_.node());
  }
  return Error{ErrorKind::System, "the copy in memory is gone"};
}

// All ranks of a group read the shared files; each verifies a part of them.
Result<Loaded> SnapshotLoader::load_folder(const std::string& path) {
  const auto found = snapshot_files::look_at(real_files(), path);
  if (!found) return found.error();
  saved_ranks_ = found->manifest.world_size;
  const size_t members = group_.get().members.size();
  const auto turn = static_cast<size_t>(group_.get().place_of(comm_.rank()));
  const std::string own = snapshot_files::rank_file_name(comm_.rank());
  Loaded loaded;
  size_t number = 0;
  for (const auto& each : found->manifest.files) {
    const bool is_shared = !each.name.starts_with("rank-");
    if (!is_shared && each.name != own) continue;
    auto file = snapshot_files::open_tensor_file(real_files(), path + "/" + each.name);
    if (!file) return file.error();
    if (!is_shared || number++ % members == turn) {
      if (Status verified = file->verify(); !verified) return verified.error();
    }
    loaded[each.name] = loaded_file(std::move(*file));
  }
  return loaded;
}

Result<Loaded> SnapshotLoader::load_single(const std::string& path) {
  auto file = open_single(path);
  if (!file) return file.error();
  if (comm_.is_first()) {
    if (Status verified = file->verify(); !verified) return verified.error();
  }
  const auto* ranks = file->value().find_as<pickle::List>(kRanksKey);
  saved_ranks_ = ranks == nullptr ? 0 : static_cast<int>(ranks->items.size());
  return Loaded{{kSingleName, loaded_file(std::move(*file))}};
}

std::string SnapshotLoader::path_of(const Candidate& candidate) const {
  if (candidate.where == Where::InMemorySnapshot) return "";
  if (location_.is_single_file) return candidate.name;
  if (candidate.where == Where::Chosen) return worker::environment()->resume_from;
  return location_.path + "/" + candidate.name;
}

// Every rank reports to the agent of its node. fell_back: the launcher chose a folder, and training
// resumed from another snapshot or from none. A copy of the chosen one (same id) is no fallback.
void SnapshotLoader::report_to_agent(const Candidate* loaded) const {
  const std::string chosen =
      worker::environment() && !location_.is_single_file ? launchers_choice() : "";
  bool fell_back = !chosen.empty() && (loaded == nullptr || loaded->where == Where::Folder);
  if (fell_back && loaded != nullptr) {
    const auto found = snapshot_files::look_at(real_files(), chosen);
    fell_back = !found || found->manifest.id != loaded->id;
  }
  worker::report_resumed(loaded == nullptr ? -1 : loaded->step,
                         loaded == nullptr ? "" : path_of(*loaded), fell_back);
}

void SnapshotLoader::report_damaged(const Candidates& damaged, const std::string& instead) const {
  if (damaged.empty() || !comm_.is_first()) return;
  std::fprintf(stderr, "cpprun: %s\n", damaged_text(damaged, instead).c_str());
}

}  // namespace cpprun::snapshot

#include "cpprun/snapshot/candidate_finder.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "cpprun/dist/objects.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/pickle/writer.hpp"

namespace cpprun::snapshot {
namespace {

using archive::TensorFile;
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
  const auto* dict = file.value().get_if<pickle::Dict>();
  const pickle::Value* held = dict == nullptr ? nullptr : dict->find(kStepKey);
  const auto* step = held == nullptr ? nullptr : held->get_if<int64_t>();
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

}  // namespace

std::string memory_id(const snapshot_files::SlotLabel& label) {
  return std::to_string(label.round) + "/" + std::to_string(label.world_size);
}

std::vector<Candidates> CandidateFinder::find() {
  std::vector<Candidates> of_ranks = gather();
  return share_single_files(of_ranks) ? gather() : of_ranks;
}

std::vector<Candidates> CandidateFinder::gather() {
  std::vector<Candidates> of_ranks;
  for (const std::string& text : comm_.gather(encode(own()))) {
    Result<Candidates> of_rank = decode(text);
    if (!of_rank) throw std::runtime_error(of_rank.error().text);
    of_ranks.push_back(std::move(*of_rank));
  }
  return of_ranks;
}

std::string CandidateFinder::launchers_choice() const {
  const auto& environment = worker::environment();
  if (!environment) return location_.path;
  const std::string& looks_at = environment->snapshot_dir;
  const bool is_its = looks_at.empty() || is_same_path(looks_at, location_.path);
  return is_its ? environment->resume_from : "";
}

Candidates CandidateFinder::own() {
  Candidates all;
  add_in_memory(all);
  if (location_.is_single_file)
    add_single_files(all);
  else
    add_folders(all);
  return all;
}

// Memory serves only a group within one node: a rank reads the slots of all members.
void CandidateFinder::add_in_memory(Candidates& all) {
  const std::vector<int>& members = group_.get().members;
  const bool is_near = std::all_of(members.begin(), members.end(), [&](int rank) {
    return comm_.node().local_rank_of(rank).has_value();
  });
  if (!uses_memory_ || !is_near) return;
  for (const auto& label : memory_.found(comm_.rank(), comm_.world())) {
    all.push_back({Where::InMemorySnapshot, label.step, memory_id(label), "",
                   "step " + std::to_string(label.step) + " in memory"});
  }
}

// The previous file only replaces a damaged one: a user who removes the file starts anew.
void CandidateFinder::add_single_files(Candidates& all) const {
  const auto is_there = [&](const std::string& path) {
    return received_.contains(path) || real_files().exists(path);
  };
  if (!is_there(location_.path)) return;
  for (const std::string& path : {location_.path, location_.path + kPrevious}) {
    if (!is_there(path)) continue;
    const auto file = open_single(path);
    if (file)
      all.push_back({Where::Folder, step_of(*file), fingerprint(*file), "", path});
    else
      all.push_back({Where::Folder, kUnknownStep, "", file.error().text, path});
  }
}

void CandidateFinder::add_folders(Candidates& all) const {
  const std::string chosen = launchers_choice();
  if (!chosen.empty()) {
    const auto found = snapshot_files::look_at(real_files(), chosen);
    if (found) all.push_back(of_folder(*found, Where::Chosen));
  }
  const auto catalog = snapshot_files::scan(real_files(), location_.path);
  if (!catalog) return;
  for (const auto& each : catalog->complete) all.push_back(of_folder(each, Where::Folder));
  for (const auto& each : catalog->incomplete) {
    all.push_back(
        {Where::Folder, each.step, "", each.why, snapshot_files::snapshot_name(each.step)});
  }
}

Result<TensorFile> CandidateFinder::open_single(const std::string& path) const {
  const auto found = received_.find(path);
  if (found == received_.end()) return snapshot_files::open_tensor_file(real_files(), path);
  return TensorFile::open(
      std::make_shared<archive::MemorySource>(archive::bytes_of(found->second), path));
}

// Returns false if every rank sees the same files as rank 0.
bool CandidateFinder::share_single_files(const std::vector<Candidates>& of_ranks) {
  const auto on_disk = [](Candidates all) {
    std::erase_if(all, [](const Candidate& each) { return each.where == Where::InMemorySnapshot; });
    return all;
  };
  const bool is_shared = std::all_of(of_ranks.begin(), of_ranks.end(), [&](const Candidates& each) {
    return on_disk(each) == on_disk(of_ranks[0]);
  });
  if (!location_.is_single_file || is_shared) return false;
  for (const std::string& path : {location_.path, location_.path + kPrevious}) {
    std::vector<std::string> bytes(1);
    if (comm_.is_first()) {
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
    if (!comm_.is_first() && !bytes[0].empty()) received_[path] = std::move(bytes[0]);
  }
  return true;
}

}  // namespace cpprun::snapshot

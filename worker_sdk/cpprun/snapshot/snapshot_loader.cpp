#include "cpprun/snapshot/snapshot_loader.hpp"

#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "cpprun/snapshot/file_storages.hpp"
#include "cpprun/snapshot/outcome_codec.hpp"
#include "cpprun/worker/snapshot_notice.hpp"
#include "snapshot_files/folders/catalog.hpp"

namespace cpprun::snapshot {
namespace {

using archive::TensorFile;
using snapshot_files::real_files;
using Where = Candidate::Where;

LoadedFile loaded_file(TensorFile file) {
  const auto shared = std::make_shared<const TensorFile>(std::move(file));
  return {shared->value(), std::make_shared<FileStorages>(shared)};
}

}  // namespace

std::optional<LoadedSnapshot> SnapshotLoader::load() {
  const Common common = snapshot::common(finder_.find());
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
      return LoadedSnapshot{each, path_of(each), std::move(*loaded)};
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
    const Status verified = memory_.verify(label);
    if (!verified) return verified.error();
    return memory_.load(label, group_.get(), comm_.node());
  }
  return Error{ErrorKind::System, "the copy in memory is gone"};
}

// All ranks of a group read the shared files; each verifies a part of them.
Result<Loaded> SnapshotLoader::load_folder(const std::string& path) {
  const auto found = snapshot_files::look_at(real_files(), path);
  if (!found) return found.error();
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
      const Status verified = file->verify();
      if (!verified) return verified.error();
    }
    loaded[each.name] = loaded_file(std::move(*file));
  }
  return loaded;
}

Result<Loaded> SnapshotLoader::load_single(const std::string& path) {
  auto file = finder_.open_single(path);
  if (!file) return file.error();
  if (comm_.is_first()) {
    const Status verified = file->verify();
    if (!verified) return verified.error();
  }
  Loaded loaded;
  loaded[kSingleName] = loaded_file(std::move(*file));
  return loaded;
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
      worker::environment() && !location_.is_single_file ? finder_.launchers_choice() : "";
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
  std::string text;
  for (const Candidate& each : damaged) {
    text += (text.empty() ? "" : "; ") + each.name + " can't be used (" + each.why + ")";
  }
  const std::string count = damaged.size() == 1 ? "one" : std::to_string(damaged.size());
  text += instead.empty() ? "; there is no other: training begins anew"
                          : "; fell back " + count + " to " + instead;
  std::fprintf(stderr, "cpprun: %s\n", text.c_str());
}

}  // namespace cpprun::snapshot

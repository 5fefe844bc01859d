#include "cpprun/snapshot_files/prune.hpp"

#include <algorithm>
#include <chrono>

#include "common/limits/snapshots.hpp"
#include "cpprun/snapshot_files/catalog.hpp"
#include "cpprun/snapshot_files/commit.hpp"
#include "cpprun/snapshot_files/nonce.hpp"

namespace cpprun::snapshot_files {
namespace {

int64_t seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}
int64_t seconds_since_1970() {
  return seconds(std::chrono::system_clock::now().time_since_epoch());
}

// When anything in a draft was changed last.
int64_t changed_at(FileLayer& files, const std::string& path) {
  Result<Info> info = files.info(path);
  if (!info) return seconds_since_1970();  // gone already, or out of reach: not ours to remove
  int64_t newest = info->changed_at;
  if (info->kind != EntryKind::Folder) return newest;
  Result<std::vector<Entry>> entries = files.list(path);
  for (const Entry& entry : entries ? *entries : std::vector<Entry>()) {
    Result<Info> inner = files.info(path + "/" + entry.name);
    if (inner) newest = std::max(newest, inner->changed_at);
  }
  return newest;
}

bool is_abandoned(FileLayer& files, const std::string& path, const std::string& nonce) {
  const LockState state = files.lock_state(path);
  if (state == LockState::Held) return false;
  const int64_t quiet = seconds_since_1970() - changed_at(files, path);
  const bool lock_tells = state == LockState::Free && is_of_this_boot(nonce);
  return quiet >= seconds(lock_tells ? limits::kDraftYoung : limits::kDraftAbandoned);
}

// Out of sight first, so that no half of a snapshot is ever seen.
Status remove_snapshot(FileLayer& files, const std::string& dir, int64_t step) {
  const std::string gone = dir + "/" + draft_name(snapshot_name(step), make_nonce());
  Status renamed = files.rename(dir + "/" + snapshot_name(step), gone);
  return renamed.ok() ? remove_tree(files, gone) : renamed;
}

void note(Pruned& pruned, const std::string& path, Status removed) {
  if (removed.ok()) pruned.removed.push_back(path);
  if (!removed.ok() && pruned.status.ok()) pruned.status = std::move(removed);
}

}  // namespace

Status remove_tree(FileLayer& files, const std::string& path) {
  Result<Info> info = files.info(path);
  if (!info) return files.exists(path) ? info.error() : Status();
  if (info->kind != EntryKind::Folder) return files.remove_file(path);
  Result<std::vector<Entry>> entries = files.list(path);
  if (!entries) return entries.error();
  for (const Entry& entry : *entries) {
    if (entry.kind == EntryKind::Folder) continue;
    if (Status removed = files.remove_file(path + "/" + entry.name); !removed.ok()) return removed;
  }
  return files.remove_folder(path);
}

Pruned sweep_drafts(FileLayer& files, const std::string& given) {
  Pruned pruned;
  const std::string dir = without_slash(given);
  if (!files.exists(dir)) return pruned;
  Result<std::vector<Entry>> entries = files.list(dir);
  if (!entries) return {{}, entries.error()};
  for (const Entry& entry : *entries) {
    const std::optional<std::string> nonce = nonce_of_draft(entry.name);
    const std::string path = dir + "/" + entry.name;
    if (!nonce || entry.kind == EntryKind::Other || !is_abandoned(files, path, *nonce)) continue;
    note(pruned, path, remove_tree(files, path));
  }
  return pruned;
}

Pruned prune(FileLayer& files, const std::string& given, const KeepRule& rule) {
  const std::string dir = without_slash(given);
  Pruned pruned = sweep_drafts(files, dir);
  Result<Catalog> catalog = scan(files, dir, limits::kSnapshotFolderEntries);
  if (!catalog) {
    if (pruned.status.ok()) pruned.status = catalog.error();
    return pruned;
  }
  if (catalog->complete.empty()) return pruned;
  std::vector<int64_t> complete, going;
  for (const FoundSnapshot& found : catalog->complete) complete.push_back(found.step);
  going = steps_to_remove(complete, rule);
  for (const Incomplete& found : catalog->incomplete) {
    if (found.step < complete.front()) going.push_back(found.step);
  }
  for (const int64_t step : going) {
    note(pruned, dir + "/" + snapshot_name(step), remove_snapshot(files, dir, step));
  }
  return pruned;
}

}  // namespace cpprun::snapshot_files

#include "snapshot_files/folders/prune.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

#include "common/limits/snapshots.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/commit.hpp"
#include "snapshot_files/folders/nonce.hpp"
#include "snapshot_files/folders/paths.hpp"

namespace cpprun::snapshot_files {
namespace {

int64_t seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}
int64_t seconds_since_1970() {
  return seconds(std::chrono::system_clock::now().time_since_epoch());
}

// The time of the last change of anything in a draft.
int64_t changed_at(FileLayer& files, const std::string& path) {
  Result<Info> info = files.info(path);
  if (!info) return seconds_since_1970();  // gone or inaccessible: "now" keeps us from removing it
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
  const bool is_lock_reliable = state == LockState::Free && is_of_this_boot(nonce);
  return quiet >= seconds(is_lock_reliable ? limits::kDraftMinAge : limits::kDraftAbandoned);
}

// Renames first, so that no reader ever sees a partly removed snapshot.
Status remove_snapshot(FileLayer& files, const std::string& dir, const std::string& name) {
  const std::string gone = dir + "/" + draft_name(name, make_nonce());
  Status renamed = files.rename(dir + "/" + name, gone);
  return renamed.ok() ? remove_tree(files, gone) : renamed;
}

// `done`: the paths for which it succeeded.
void note(Pruned& pruned, std::vector<std::string>& done, const std::string& path, Status status) {
  if (status) done.push_back(path);
  if (!status && pruned.status) pruned.status = std::move(status);
}

// Keeps these snapshots for the user, but under names that no reader opens.
void set_aside(FileLayer& files, const std::string& dir, const std::vector<int64_t>& steps,
               Pruned& pruned) {
  for (const int64_t step : steps) {
    const std::string name = snapshot_name(step);
    const std::string left = dir + "/" + left_name(name, make_nonce());
    note(pruned, pruned.set_aside, left, files.rename(dir + "/" + name, left));
  }
}

// Limits the snapshots set aside, because each resume from an earlier step adds some.
void limit_left(FileLayer& files, const std::string& dir, size_t most, Pruned& pruned) {
  Result<std::vector<Entry>> entries = files.list(dir);
  if (!entries) return;
  std::vector<std::pair<int64_t, std::string>> left;
  for (const Entry& entry : *entries) {
    if (!is_left_name(entry.name)) continue;
    left.emplace_back(changed_at(files, dir + "/" + entry.name), entry.name);
  }
  std::ranges::sort(left);
  left.resize(left.size() - std::min(std::max<size_t>(most, 1), left.size()));
  for (const auto& [saved_at, name] : left) {
    note(pruned, pruned.removed, dir + "/" + name, remove_snapshot(files, dir, name));
  }
}

}  // namespace

std::vector<int64_t> steps_to_remove(std::vector<int64_t> complete, const KeepRule& rule,
                                     int64_t newest) {
  std::erase_if(complete, [newest](int64_t step) { return step > newest; });
  std::ranges::sort(complete);
  const size_t kept = std::min(std::max<size_t>(rule.last, 1), complete.size());
  complete.resize(complete.size() - kept);
  std::erase_if(complete,
                [&rule](int64_t step) { return rule.every > 0 && step % rule.every == 0; });
  return complete;
}

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

Pruned mark_bad(FileLayer& files, const std::string& given, int64_t step) {
  Pruned pruned;
  const std::string dir = without_slash(given);
  Result<std::vector<Entry>> entries = files.list(dir);
  if (!entries) return {{}, {}, entries.error()};
  std::vector<int64_t> bad;
  for (const Entry& entry : *entries) {
    const std::optional<int64_t> found = step_of_name(entry.name);
    if (!found || *found < step || entry.kind != EntryKind::Folder) continue;
    const std::string mark = dir + "/" + entry.name + "/" + kBadMarkName;
    Result<std::unique_ptr<File>> made = files.create(mark);
    if (!made && !files.exists(mark)) return {{}, {}, made.error()};
    bad.push_back(*found);
  }
  // The newest one first: if this is cut short, the newest of those that are left is still bad, and
  // the next call continues.
  std::ranges::sort(bad, std::greater());
  set_aside(files, dir, bad, pruned);
  if (pruned.status) pruned.status = files.sync_folder(dir);
  return pruned;
}

std::vector<Manifest> marked_bad(FileLayer& files, const std::string& given) {
  const std::string dir = without_slash(given);
  std::vector<Manifest> all;
  const Result<std::vector<Entry>> entries = files.list(dir);
  for (const Entry& entry : entries ? *entries : std::vector<Entry>()) {
    const std::string path = dir + "/" + entry.name;
    if (!is_left_name(entry.name) || !files.exists(path + "/" + kBadMarkName)) continue;
    Result<Manifest> manifest = read_manifest(files, path);
    if (manifest) all.push_back(std::move(*manifest));
  }
  return all;
}

Pruned sweep_drafts(FileLayer& files, const std::string& given) {
  Pruned pruned;
  const std::string dir = without_slash(given);
  if (!files.exists(dir)) return pruned;
  Result<std::vector<Entry>> entries = files.list(dir);
  if (!entries) return {{}, {}, entries.error()};
  for (const Entry& entry : *entries) {
    const std::optional<std::string> nonce = nonce_of_draft(entry.name);
    const std::string path = dir + "/" + entry.name;
    if (!nonce || entry.kind == EntryKind::Other || !is_abandoned(files, path, *nonce)) continue;
    note(pruned, pruned.removed, path, remove_tree(files, path));
  }
  return pruned;
}

Pruned prune(FileLayer& files, const std::string& given, const KeepRule& rule,
             std::optional<int64_t> written) {
  const std::string dir = without_slash(given);
  Pruned pruned = sweep_drafts(files, dir);
  Result<Catalog> catalog = scan(files, dir, limits::kSnapshotFolderEntries);
  if (!catalog) {
    if (pruned.status.ok()) pruned.status = catalog.error();
    return pruned;
  }
  std::vector<int64_t> complete, later;
  for (const FoundSnapshot& found : catalog->complete) complete.push_back(found.step);
  // The folder may not show yet what was published (NFS): remove nothing then.
  if (complete.empty() || (written && std::ranges::count(complete, *written) == 0)) return pruned;
  const int64_t newest = written.value_or(complete.front());
  std::vector<int64_t> going = steps_to_remove(complete, rule, newest);
  for (const Incomplete& found : catalog->incomplete) {
    if (!has_manifest(files, found.path)) continue;  // another program's
    if (found.step < newest) going.push_back(found.step);
    if (written && found.step > newest) later.push_back(found.step);
  }
  std::ranges::copy_if(complete, std::back_inserter(later), [&](int64_t s) { return s > newest; });
  set_aside(files, dir, later, pruned);
  for (const int64_t step : going) {
    const std::string name = snapshot_name(step);
    note(pruned, pruned.removed, dir + "/" + name, remove_snapshot(files, dir, name));
  }
  limit_left(files, dir, rule.last, pruned);
  return pruned;
}

}  // namespace cpprun::snapshot_files

// Removal of snapshots and drafts that are not needed any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/folders/file_layer.hpp"
#include "snapshot_files/folders/manifest.hpp"

namespace cpprun::snapshot_files {

struct KeepRule {
  size_t last = 3;    // keeps this many of the newest; 0 counts as 1: the newest is never removed
  int64_t every = 0;  // also keeps multiples of this step; 0: none
};

// Of the steps of complete snapshots, in any order: those to remove, ascending. Steps above
// `newest` are neither counted nor removed.
std::vector<int64_t> steps_to_remove(std::vector<int64_t> complete, const KeepRule& rule,
                                     int64_t newest = INT64_MAX);

// A file of this name in a snapshot that was set aside: it and what was saved after it in its round
// are bad, also in memory.
inline constexpr const char* kBadMarkName = "marked-bad";

// Removes the snapshot folders that `rule` does not keep, incomplete ones older than the newest
// complete one, and drafts of dead writers. A folder step-<n> without a manifest stays: another
// program, such as one with torch's DCP, has written it. Returns the removed paths. Error: the
// first failure; the others are removed nevertheless.
//
// A writer counts as dead if it wrote on this machine since its boot, no process holds the draft's
// lock, and nothing in the draft has changed for limits::kDraftMinAge. If it wrote on another
// machine, or the file system has no locks: if nothing has changed for limits::kDraftAbandoned.
//
// `written` is the step that a training has just published, which makes it the newest: it has
// resumed from an earlier step, so folders of later steps are obsolete. They are renamed to
// left-step-<n>.<nonce>, which no reader opens; the `rule.last` last saved of those stay.
struct Pruned {
  std::vector<std::string> removed;
  std::vector<std::string> set_aside;  // by their new paths
  Status status;
};
Pruned prune(FileLayer& files, const std::string& dir, const KeepRule& rule,
             std::optional<int64_t> written = std::nullopt);
// Removes only drafts of dead writers.
Pruned sweep_drafts(FileLayer& files, const std::string& dir);
// Removes a file, or a folder and the files in it. Subfolders stay and cause an error.
Status remove_tree(FileLayer& files, const std::string& path);

// Marks the snapshot of `step` and all later ones as bad and sets them aside, so that nothing
// resumes from them; they remain for a look. A state that has continued from a bad one is bad too.
Pruned mark_bad(FileLayer& files, const std::string& dir, int64_t step);
// The snapshots that mark_bad() has set aside, as far as their manifests can be read.
std::vector<Manifest> marked_bad(FileLayer& files, const std::string& dir);

}  // namespace cpprun::snapshot_files

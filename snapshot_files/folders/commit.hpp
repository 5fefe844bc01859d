// Commit: how a snapshot comes into being in one step. It is written as a draft, a folder
// .step-<n>.<nonce>.tmp; then its manifest, last; then it is renamed to step-<n>. Whatever is cut
// short on the way, <dir> holds the snapshots that it held before, or those and the new one.
//
// docs/snapshots.md, "Commit". Several processes write into one draft; one of them creates it,
// writes its manifest and publishes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/folders/file_layer.hpp"
#include "snapshot_files/folders/keep.hpp"
#include "snapshot_files/folders/manifest.hpp"

namespace cpprun::snapshot_files {

// A draft that this process writes into. While it lives, no sweep takes the draft away.
class Draft {
 public:
  // Makes <dir>, if need be, and a draft in it. `nonce`: make_nonce().
  static Result<Draft> create(FileLayer& files, const std::string& dir, int64_t step,
                              const std::string& nonce);
  // The draft of another process.
  static Result<Draft> join(FileLayer& files, const std::string& dir, int64_t step,
                            const std::string& nonce);

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& file) const { return path_ + "/" + file; }

  // Requires: every file is written and synced. Checks their sizes, then writes the manifest, and
  // syncs both it and the folder.
  Status write_manifest(const Manifest& manifest);
  // The last step, after the agent's leave. Returns <dir>/step-<n>. A snapshot of the same step
  // that is there is replaced in one step where the file system can exchange names.
  Result<std::string> publish();
  // Takes it away. Failures are left to a later sweep.
  void discard();

 private:
  Draft(FileLayer& files, std::string dir, int64_t step, std::string path);

  FileLayer* files_;
  std::string dir_;
  int64_t step_;
  std::string path_;
  std::unique_ptr<Lock> lock_;
  bool is_published_ = false;
};

// Names this machine (by its boot) and is otherwise random: 16 hex digits.
std::string make_nonce();

// Puts a finished and synced file `draft` in the place of `path` in one step, both in one folder,
// and syncs the folder. What was there before stays as `path` + ".prev", where the file system has
// second names.
Status replace_file(FileLayer& files, const std::string& draft, const std::string& path);
// Where to write such a file: ".<name>.<nonce>.tmp" beside it.
std::string draft_of(const std::string& path, const std::string& nonce);
// Such a file that this process writes. While it lives, no sweep takes the draft away.
struct FileDraft {
  std::string path;
  std::unique_ptr<Lock> lock;
  std::unique_ptr<File> file;
};
Result<FileDraft> create_file_draft(FileLayer& files, const std::string& path);

// Removes the snapshot folders that `rule` does not keep, incomplete ones older than the newest
// complete one, and what dead writers left. Returns the paths removed. Error: the first that could
// not be; the others are removed all the same.
//
// A draft's writer is dead when it wrote on this machine since it booted, nobody holds the lock on
// the draft, and nothing in it was changed for limits::kDraftMinAge. Of other machines, and where
// there are no locks: when nothing was changed for limits::kDraftAbandoned.
//
// `written`: the step that a training has just published. It is the newest then: folders of later
// steps belong to a future that was left, and are renamed to left-step-<n>.<nonce>, where nobody
// chooses them. Of those the last `rule.last` that were saved stay.
struct Pruned {
  std::vector<std::string> removed;
  std::vector<std::string> set_aside;  // by their new paths
  Status status;
};
Pruned prune(FileLayer& files, const std::string& dir, const KeepRule& rule,
             std::optional<int64_t> written = std::nullopt);
// Only what dead writers left.
Pruned sweep_drafts(FileLayer& files, const std::string& dir);

}  // namespace cpprun::snapshot_files

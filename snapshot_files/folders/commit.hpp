// Commit: makes a snapshot visible atomically. Writers fill a draft, a folder
// .step-<n>.<nonce>.tmp; its manifest is written last; a rename to step-<n> publishes it. After a
// crash at any point, <dir> holds its earlier snapshots, with or without the new one, and no
// partial one under its final name (docs/reference/snapshots.md, "Commit").
//
// Several processes write into one draft; one of them creates it, writes its manifest and publishes
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/result.hpp"
#include "snapshot_files/folders/file_layer.hpp"
#include "snapshot_files/folders/manifest.hpp"

namespace cpprun::snapshot_files {

// A draft that this process writes into. While the object lives, no sweep removes the draft.
class Draft {
 public:
  // Creates <dir> if it is missing, and a draft in it. `nonce`: make_nonce().
  static Result<Draft> create(FileLayer& files, const std::string& dir, int64_t step,
                              const std::string& nonce);
  // Joins the draft of another process.
  static Result<Draft> join(FileLayer& files, const std::string& dir, int64_t step,
                            const std::string& nonce);

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& file) const { return path_ + "/" + file; }

  // Checks the sizes of all files, writes the manifest, and syncs it and the folder. Requires:
  // every file is written and synced.
  Status write_manifest(const Manifest& manifest);
  // The same with the text of another node, from which `manifest` was decoded. encode() may make a
  // longer one.
  Status write_manifest(const Manifest& manifest, const std::string& text);
  // The last step; requires the agent's permission. Returns <dir>/step-<n>. Replaces an existing
  // snapshot of the same step, atomically where the file system can exchange names.
  Result<std::string> publish();
  // Removes the draft. If that fails, a later sweep removes it.
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

// 16 hex digits: half identify this machine's boot, half are random.
std::string make_nonce();

// Renames a finished and synced file `draft` to `path` in the same folder and syncs the folder. The
// previous file stays as `path` + ".prev" where the file system has hard links.
Status replace_file(FileLayer& files, const std::string& draft, const std::string& path);
// The path of such a draft: ".<name>.<nonce>.tmp" in the same folder.
std::string draft_of(const std::string& path, const std::string& nonce);
// A draft of a file that this process writes. While the object lives, no sweep removes the draft.
struct FileDraft {
  std::string path;
  std::unique_ptr<Lock> lock;
  std::unique_ptr<File> file;
};
Result<FileDraft> create_file_draft(FileLayer& files, const std::string& path);

}  // namespace cpprun::snapshot_files

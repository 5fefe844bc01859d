#include "snapshot_files/folders/commit.hpp"

#include "common/check.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/nonce.hpp"
#include "snapshot_files/folders/paths.hpp"
#include "snapshot_files/folders/prune.hpp"

namespace cpprun::snapshot_files {
namespace {

constexpr const char* kManifestDraft = ".manifest.json.tmp";

// Creates `dir` and all its parents, and syncs each to disk.
Status make_folders(FileLayer& files, const std::string& dir) {
  if (files.exists(dir)) return {};
  const std::string above = folder_of(dir);
  if (above != dir) {
    if (Status made = make_folders(files, above); !made.ok()) return made;
  }
  if (Status made = files.make_folder(dir); !made.ok() && !files.exists(dir)) return made;
  return files.sync_folder(above);
}

Status write_text(FileLayer& files, const std::string& path, const std::string& text) {
  Result<std::unique_ptr<File>> file = files.create(path);
  if (!file) return file.error();
  if (Status wrote = (*file)->write_at(0, archive::bytes_of(text)); !wrote.ok()) return wrote;
  return (*file)->sync();
}

std::string draft_path(const std::string& dir, int64_t step, const std::string& nonce) {
  return dir + "/" + draft_name(snapshot_name(step), nonce);
}

}  // namespace

Draft::Draft(FileLayer& files, std::string dir, int64_t step, std::string path)
    : files_(&files), dir_(std::move(dir)), step_(step), path_(std::move(path)) {
  lock_ = files_->lock_shared(path_);
}

Result<Draft> Draft::create(FileLayer& files, const std::string& dir, int64_t step,
                            const std::string& nonce) {
  const std::string folder = without_slash(dir);
  if (Status made = make_folders(files, folder); !made.ok()) return made.error();
  const std::string path = draft_path(folder, step, nonce);
  if (Status made = files.make_folder(path); !made.ok()) return made.error();
  return Draft(files, folder, step, path);
}

Result<Draft> Draft::join(FileLayer& files, const std::string& dir, int64_t step,
                          const std::string& nonce) {
  const std::string folder = without_slash(dir);
  const std::string path = draft_path(folder, step, nonce);
  Result<Info> info = files.info(path);
  if (!info) return info.error();
  return Draft(files, folder, step, path);
}

Status Draft::write_manifest(const Manifest& manifest) {
  return write_manifest(manifest, encode(manifest));
}

Status Draft::write_manifest(const Manifest& manifest, const std::string& text) {
  CPPRUN_CHECK(manifest.step == step_);
  const std::string draft = path_of(kManifestDraft);
  if (Status wrote = write_text(*files_, draft, text); !wrote.ok()) return wrote;
  for (const ManifestFile& file : manifest.files) {
    Result<Info> info = files_->info(path_of(file.name));
    if (!info) return info.error();
    if (info->bytes != file.bytes) {
      return Error{ErrorKind::System, path_of(file.name) + " has " + std::to_string(info->bytes) +
                                          " bytes, but " + std::to_string(file.bytes) +
                                          " were written"};
    }
  }
  if (Status renamed = files_->rename(draft, path_of(kManifestName)); !renamed.ok()) return renamed;
  return files_->sync_folder(path_);
}

Result<std::string> Draft::publish() {
  const std::string target = dir_ + "/" + snapshot_name(step_);
  std::string old;  // new path of the replaced snapshot of the same step
  if (files_->exists(target)) {
    if (!has_manifest(*files_, target))
      return Error{ErrorKind::System,
                   target + " is there and has no " + kManifestName +
                       ", so it is no snapshot of cpprun: move it, or save into another folder"};
    Result<bool> exchanged = files_->exchange(path_, target);
    if (!exchanged) return exchanged.error();
    if (*exchanged) {
      old = path_;
    } else {
      old = draft_path(dir_, step_, make_nonce());
      if (Status moved = files_->rename(target, old); !moved.ok()) return moved.error();
    }
  }
  if (old != path_) {
    if (Status renamed = files_->rename(path_, target); !renamed.ok()) return renamed.error();
  }
  is_published_ = true;
  path_ = target;
  if (Status synced = files_->sync_folder(dir_); !synced.ok()) return synced.error();
  if (!old.empty()) static_cast<void>(remove_tree(*files_, old));  // on failure a sweep removes it
  return target;
}

void Draft::discard() {
  if (!is_published_) static_cast<void>(remove_tree(*files_, path_));
  lock_.reset();
}

Result<FileDraft> create_file_draft(FileLayer& files, const std::string& path) {
  const std::string draft = draft_of(path, make_nonce());
  Result<std::unique_ptr<File>> file = files.create(draft);
  if (!file) return file.error();
  return FileDraft{draft, files.lock_shared(draft), std::move(*file)};
}

Status replace_file(FileLayer& files, const std::string& draft, const std::string& path) {
  if (files.exists(path)) {
    const std::string beside = draft_of(path + ".prev", make_nonce());
    Result<bool> linked = files.link(path, beside);
    if (!linked) return linked.error();
    if (*linked) {
      if (Status kept = files.rename(beside, path + ".prev"); !kept.ok()) return kept;
    }
  }
  if (Status renamed = files.rename(draft, path); !renamed.ok()) return renamed;
  return files.sync_folder(folder_of(path));
}

}  // namespace cpprun::snapshot_files

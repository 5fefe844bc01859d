// The commands that write: convert, prune, mark-bad.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>

#include "common/log/log.hpp"
#include "common/version.hpp"
#include "launcher/cpprunctl/snapshot/snapshot.hpp"
#include "launcher/cpprunctl/snapshot/snapshot_formats.hpp"
#include "launcher/cpprunctl/snapshot/snapshot_paths.hpp"
#include "launcher/report/text_table.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/archive/safetensors.hpp"
#include "snapshot_files/folders/commit.hpp"
#include "snapshot_files/folders/prune.hpp"

namespace cpprun {
namespace {

using namespace ctl;
using namespace snapshot_files;
using archive::TensorFile;

constexpr size_t kNamesListed = 8;  // of possibly thousands of ranks, for a readable message

template <class Visit>
void for_each_tensor(pickle::Value& value, const Visit& visit) {
  if (auto* tensor = value.get_if<pickle::TensorRef>()) visit(*tensor);
  if (auto* list = value.get_if<pickle::List>()) {
    for (pickle::Value& item : list->items) for_each_tensor(item, visit);
  }
  if (auto* tuple = value.get_if<pickle::Tuple>()) {
    for (pickle::Value& item : tuple->items) for_each_tensor(item, visit);
  }
  if (auto* dict = value.get_if<pickle::Dict>()) {
    for (auto& [key, held] : dict->pairs) for_each_tensor(held, visit);
  }
}

// A new tensor file with the storages of several others.
class MergedFile {
 public:
  // Returns the tree of `file`, with its storages renamed so that those of several files differ.
  pickle::Value take(std::shared_ptr<const archive::TensorFile> file);

  // Copies each storage; verifies its crc32.
  Result<archive::Written> write(archive::Output& output, const pickle::Value& value) const;

 private:
  struct From {
    std::shared_ptr<const archive::TensorFile> file;
    std::string storage;
  };
  std::map<std::string, From> storages_;  // by the new name
  size_t files_ = 0;
};

pickle::Value MergedFile::take(std::shared_ptr<const archive::TensorFile> file) {
  const size_t number = files_++;
  std::map<std::string, std::string> renamed;
  pickle::Value value = file->value();
  for_each_tensor(value, [&](pickle::TensorRef& tensor) {
    const auto [found, is_new] = renamed.try_emplace(
        tensor.storage, std::to_string(number) + "_" + std::to_string(renamed.size()));
    if (is_new) storages_[found->second] = {file, tensor.storage};
    tensor.storage = found->second;
  });
  return value;
}

Result<archive::Written> MergedFile::write(archive::Output& output,
                                           const pickle::Value& value) const {
  const archive::Plan plan(archive::storages_of(value));
  std::vector<uint32_t> crc32s;
  std::vector<std::byte> bytes;
  for (const archive::Place& place : plan.places()) {
    const From& from = storages_.at(place.name);
    bytes.resize(from.file->storage_bytes(from.storage));
    if (Status read = from.file->read_storage(from.storage, bytes); !read.ok()) return read.error();
    const auto wanted = archive::ConstBytes(bytes).first(place.bytes);
    Result<uint32_t> crc = archive::write_part(output, place, 0, wanted);
    if (!crc) return crc.error();
    crc32s.push_back(*crc);
  }
  return archive::write_rest(output, plan, value, crc32s);
}

Result<std::shared_ptr<const TensorFile>> open_shared(const std::string& path) {
  Result<TensorFile> file = open_tensor_file(real_files(), path);
  if (!file) return file.error();
  return std::make_shared<const TensorFile>(std::move(*file));
}

// The input of convert: a tree, and the files that hold its storages.
struct Input {
  MergedFile merged;
  pickle::Value value;
};

Result<Input> read_single(const std::string& path) {
  Result<std::shared_ptr<const TensorFile>> file = open_shared(path);
  if (!file) return file.error();
  Input read;
  read.value = read.merged.take(*file);
  return read;
}

// With a folder per node, each folder holds only its own ranks' files, and the manifest names the
// others. Files that the user has copied here count as present.
Status has_all_ranks(const FoundSnapshot& found) {
  std::string missing;
  size_t count = 0;
  for (const std::string& name : found.manifest.elsewhere) {
    if (real_files().exists(found.path + "/" + name)) continue;
    if (++count <= kNamesListed) missing += (missing.empty() ? "" : ", ") + name;
  }
  if (count == 0) return {};
  if (count > kNamesListed) missing += " and " + std::to_string(count - kNamesListed) + " more";
  return Error{ErrorKind::BadValue,
               found.path + " is a part: other nodes' folders hold " + missing + ". Copy what is " +
                   "missing here from their " + snapshot_name(found.step) +
                   ", or convert to .safetensors, which is the model alone and is here"};
}

// Reads a snapshot's folder and converts it to the single-file form.
Result<Input> read_snapshot(const std::string& path) {
  Result<FoundSnapshot> found = complete_snapshot(path);
  if (!found) return found.error();
  if (Status whole = has_all_ranks(*found); !whole.ok()) return whole.error();
  Input read;
  FolderFormat form;
  const auto has = [&](const std::string& name) {
    return found->manifest.find(name) != nullptr ||
           std::ranges::count(found->manifest.elsewhere, name) != 0;
  };
  const auto take = [&](const std::string& name, pickle::Value& into) -> Status {
    if (!has(name)) return {};
    Result<std::shared_ptr<const TensorFile>> file = open_shared(found->path + "/" + name);
    if (!file) return file.error();
    into = read.merged.take(*file);
    return {};
  };
  if (Status taken = take(kModelName, form.model); !taken.ok()) return taken.error();
  if (Status taken = take(kOptimizerName, form.optimizer); !taken.ok()) return taken.error();
  for (int rank = 0; rank < found->manifest.world_size && has(rank_file_name(rank)); ++rank) {
    form.ranks.emplace_back();
    Status taken = take(rank_file_name(rank), form.ranks.back());
    if (!taken.ok()) return taken.error();
  }
  read.value = to_single(form);
  return read;
}

// Writes a temporary file beside `path` with `write(File&)` and renames it to `path`.
template <class Write>
Status replace(const std::string& path, const Write& write) {
  FileLayer& files = real_files();
  Result<FileDraft> draft = create_file_draft(files, path);
  if (!draft) return draft.error();
  Status done = [&]() -> Status {
    if (Status wrote = write(*draft->file); !wrote.ok()) return wrote;
    if (Status synced = draft->file->sync(); !synced.ok()) return synced;
    return replace_file(files, draft->path, path);
  }();
  if (!done.ok()) static_cast<void>(files.remove_file(draft->path));
  return done;
}

Status write_single(const Input& read, const std::string& path) {
  return replace(path, [&read](File& file) -> Status {
    Result<archive::Written> written = read.merged.write(file, read.value);
    return written ? Status() : Status(written.error());
  });
}

// --strip-prefix changes only the names; the elements are found by their storages.
Status write_safetensors_file(const SnapshotCommandOptions& options, const std::string& source) {
  Result<std::shared_ptr<const TensorFile>> file = open_shared(source);
  if (!file) return file.error();
  pickle::Value model = model_of((*file)->value());
  if (!options.strip_prefix.empty()) strip_prefix(model, options.strip_prefix);
  const std::vector<archive::NamedTensor> tensors = archive::tensors_of(model, '.');
  if (tensors.empty()) {
    return Error{ErrorKind::BadValue, source + " has no tensors to export"};
  }
  return replace(options.to,
                 [&](File& out) { return archive::write_safetensors(out, **file, tensors); });
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&now, &parts));
  return text;
}

Status write_files(const Input& read, const FolderFormat& form, Draft& draft, Manifest& manifest) {
  const auto write = [&](const std::string& name, const pickle::Value& value) -> Status {
    Result<std::unique_ptr<File>> file = real_files().create(draft.path_of(name));
    if (!file) return file.error();
    Result<archive::Written> written = read.merged.write(**file, value);
    if (!written) return written.error();
    manifest.files.push_back({name, written->bytes, written->crc32});
    return (*file)->sync();
  };
  Status done = write(kModelName, form.model);
  if (done.ok()) done = write(kOptimizerName, form.optimizer);
  for (size_t rank = 0; done.ok() && rank < form.ranks.size(); ++rank) {
    done = write(rank_file_name(static_cast<int>(rank)), form.ranks[rank]);
  }
  return done;
}

Status write_folder(const SnapshotCommandOptions& options, const Input& read) {
  Result<FolderFormat> form = to_folder(read.value);
  if (!form) return Error{ErrorKind::BadValue, options.path + ": " + form.error().text};
  Manifest manifest;
  manifest.step = options.step >= 0 ? options.step : number_at(read.value, "STEP").value_or(-1);
  if (manifest.step < 0) {
    return Error{ErrorKind::Usage, options.path + " does not contain its step; name it: --step=N"};
  }
  manifest.id = make_nonce() + make_nonce();
  manifest.epoch = std::max<int64_t>(0, number_at(read.value, "EPOCHS_RUN").value_or(0));
  manifest.world_size = std::max(1, static_cast<int>(form->ranks.size()));
  manifest.cpprun = version();
  manifest.saved_at = now_text();
  Result<Draft> draft = Draft::create(real_files(), options.to, manifest.step, make_nonce());
  if (!draft) return draft.error();
  Status done = write_files(read, *form, *draft, manifest);
  if (done.ok()) done = draft->write_manifest(manifest);
  if (done.ok()) {
    Result<std::string> published = draft->publish();
    if (published) return {};
    done = published.error();
  }
  draft->discard();
  return done;
}

bool is_file_name(const std::string& path) {
  return path.ends_with(".pt") || path.ends_with(".pth") || path.ends_with(".bin");
}

// torch.distributed.checkpoint's format, which Python alone reads.
Status is_not_sharded(const std::string& path) {
  const Result<FoundSnapshot> found = complete_snapshot(path);
  if (!found || found->manifest.find(kDcpMetadataName) == nullptr) return {};
  const std::string reader = "torch.distributed.checkpoint.format_utils dcp_to_torch ";
  return Error{ErrorKind::BadValue, path + " is sharded; 'python -m cpprun_worker.to_safetensors " +
                                        path + " FILE' writes its model, 'python -m " + reader +
                                        path + " FILE' all of it"};
}

}  // namespace

Status snapshot_convert(const SnapshotCommandOptions& options) {
  Result<PathKind> kind = kind_of_path(options.path);
  if (!kind) return kind.error();
  if (*kind == PathKind::Folder) {
    return Error{ErrorKind::Usage, options.path +
                                       " is a folder of snapshots; name one of them, as " +
                                       "cpprunctl snapshot latest --folder does"};
  }
  const bool is_snapshot = *kind == PathKind::Snapshot;
  if (is_snapshot) {
    if (Status whole = is_not_sharded(options.path); !whole.ok()) return whole;
  }
  if (options.to.ends_with(".safetensors")) {
    return write_safetensors_file(options,
                                  is_snapshot ? options.path + "/" + kModelName : options.path);
  }
  Result<Input> read = is_snapshot ? read_snapshot(options.path) : read_single(options.path);
  if (!read) return read.error();
  if (!options.strip_prefix.empty() && strip_prefix(read->value, options.strip_prefix) == 0) {
    log::warning("no names all begin with '" + options.strip_prefix + "', so none was changed");
  }
  return is_file_name(options.to) ? write_single(*read, options.to) : write_folder(options, *read);
}

Status snapshot_prune(const SnapshotCommandOptions& options) {
  if (!real_files().exists(options.path)) {
    return Error{ErrorKind::BadValue, options.path + " is not there; check the path"};
  }
  const Pruned pruned =
      prune(real_files(), options.path, {.last = options.keep, .every = options.keep_every});
  for (const std::string& path : pruned.removed) print("removed " + path + "\n");
  return pruned.status;
}

Status snapshot_mark_bad(const SnapshotCommandOptions& options) {
  const std::filesystem::path path = std::filesystem::path(options.path + "/").parent_path();
  const std::optional<int64_t> step = step_of_name(path.filename().string());
  if (!step || !real_files().exists(path.string())) {
    return Error{ErrorKind::BadValue,
                 options.path + " is no snapshot: name one, such as runs/step-96"};
  }
  const std::string dir = path.has_parent_path() ? path.parent_path().string() : ".";
  const Pruned pruned = mark_bad(real_files(), dir, *step);
  for (const std::string& aside : pruned.set_aside) print("set aside as " + aside + "\n");
  return pruned.status;
}

}  // namespace cpprun

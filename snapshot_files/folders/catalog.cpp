#include "snapshot_files/folders/catalog.hpp"

#include <algorithm>

#include "common/text.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/folders/paths.hpp"

namespace cpprun::snapshot_files {
namespace {

constexpr std::string_view kPrefix = "step-";

std::string_view last_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

Error incomplete(const std::string& why) { return Error{ErrorKind::Protocol, why}; }

Status check_sizes(FileLayer& files, const std::string& path, const Manifest& manifest) {
  for (const ManifestFile& file : manifest.files) {
    Result<Info> info = files.info(path + "/" + file.name);
    if (!info || info->kind != EntryKind::File) {
      return incomplete("its file " + file.name + " is missing");
    }
    if (info->bytes != file.bytes) {
      return incomplete("its file " + file.name + " has " + std::to_string(info->bytes) +
                        " bytes, by the manifest it has " + std::to_string(file.bytes));
    }
  }
  return {};
}

Status verify_file(FileLayer& files, const std::string& path, const ManifestFile& expected) {
  Result<std::unique_ptr<File>> file = files.open_to_read(path);
  if (!file) return file.error();
  const Result<uint32_t> crc = archive::crc32_of(**file, 0, expected.bytes);
  if (!crc) return crc.error();
  if (*crc == expected.crc32) return {};
  return Error{ErrorKind::Protocol,
               path + " is not what was written (its crc32 differs from the manifest's)"};
}

}  // namespace

std::string snapshot_name(int64_t step) { return std::string(kPrefix) + std::to_string(step); }

std::optional<int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::optional<int64_t> step = text::parse_int(name.substr(kPrefix.size()));
  if (!step || *step < 0 || snapshot_name(*step) != name) return std::nullopt;
  return step;
}

bool has_manifest(FileLayer& files, const std::string& path) {
  return files.exists(path + "/" + kManifestName);
}

Result<Manifest> read_manifest(FileLayer& files, const std::string& path) {
  if (!has_manifest(files, path)) {
    const bool is_of_dcp = files.exists(path + "/" + kDcpMetadataName);
    return incomplete(std::string("it has no ") + kManifestName +
                      (is_of_dcp ? "; it is a checkpoint of torch.distributed.checkpoint" : ""));
  }
  const std::string name = path + "/" + kManifestName;
  Result<std::unique_ptr<File>> file = files.open_to_read(name);
  if (!file) return file.error();
  Result<uint64_t> size = (*file)->size();
  if (!size) return size.error();
  if (*size > limits::kManifestBytes) return incomplete(name + " is too large");
  Result<std::string> text = (*file)->read_text(0, *size);
  if (!text) return text.error();
  Result<Manifest> manifest = decode_manifest(*text);
  if (!manifest) return incomplete(name + " " + manifest.error().text);
  return manifest;
}

Result<FoundSnapshot> look_at(FileLayer& files, const std::string& given) {
  const std::string path = without_slash(given);
  const std::optional<int64_t> step = step_of_name(last_name(path));
  if (!step) return incomplete("its name is not step-<n>");
  Result<Info> info = files.info(path);
  if (!info || info->kind != EntryKind::Folder) return incomplete("it is no folder");
  Result<Manifest> manifest = read_manifest(files, path);
  if (!manifest) return manifest.error();
  if (manifest->step != *step) {
    return incomplete("its manifest has step " + std::to_string(manifest->step));
  }
  if (Status sizes = check_sizes(files, path, *manifest); !sizes.ok()) return sizes.error();
  return FoundSnapshot{*step, path, std::move(*manifest)};
}

Result<Catalog> scan(FileLayer& files, const std::string& given, size_t most) {
  Catalog made;
  const std::string folder = without_slash(given);
  if (!files.exists(folder)) return made;
  Result<std::vector<Entry>> entries = files.list(folder);
  if (!entries) return entries.error();
  std::vector<int64_t> steps;
  for (const Entry& entry : *entries) {
    if (const auto step = step_of_name(entry.name)) steps.push_back(*step);
  }
  std::ranges::sort(steps, std::greater());
  for (const int64_t step : steps) {
    if (made.complete.size() == most) break;
    const std::string path = folder + "/" + snapshot_name(step);
    Result<FoundSnapshot> found = look_at(files, path);
    if (found) {
      made.complete.push_back(std::move(*found));
    } else {
      made.incomplete.push_back({step, path, found.error().text});
    }
  }
  return made;
}

Status verify(FileLayer& files, const FoundSnapshot& snapshot) {
  for (const ManifestFile& file : snapshot.manifest.files) {
    const std::string path = snapshot.path + "/" + file.name;
    if (Status verified = verify_file(files, path, file); !verified) return verified;
  }
  return {};
}

Result<archive::TensorFile> open_tensor_file(FileLayer& files, const std::string& path) {
  Result<std::unique_ptr<File>> file = files.open_to_read(path, /*follows_links=*/true);
  if (!file) return file.error();
  return archive::TensorFile::open(std::shared_ptr<const File>(std::move(*file)));
}

}  // namespace cpprun::snapshot_files

#include "launcher/cpprunctl/snapshot/snapshot_paths.hpp"

#include <array>
#include <cstdio>

namespace cpprun::ctl {

using namespace snapshot_files;

Result<PathKind> kind_of_path(const std::string& path) {
  FileLayer& files = real_files();
  // "/." follows a link to a folder.
  Result<Info> info = files.info(path + "/.");
  if (!info) {
    info = files.info(path);
    if (!info) return info.error();
    return PathKind::File;
  }
  const std::string_view bare = std::string_view(path).substr(0, path.find_last_not_of('/') + 1);
  const bool is_snapshot = step_of_name(bare.substr(bare.rfind('/') + 1)).has_value() ||
                           files.exists(path + "/" + kManifestName);
  return is_snapshot ? PathKind::Snapshot : PathKind::Folder;
}

Result<FoundSnapshot> complete_snapshot(const std::string& path) {
  Result<FoundSnapshot> found = look_at(real_files(), path);
  if (found) return found;
  return Error{ErrorKind::Protocol,
               path + " is not complete: " + found.error().text +
                   "; take an older one (cpprunctl snapshot ls shows what there is)"};
}

Result<std::vector<NamedFile>> open_files(const std::string& path, PathKind kind) {
  std::vector<NamedFile> all;
  if (kind == PathKind::File) {
    Result<archive::TensorFile> file = open_tensor_file(real_files(), path);
    if (!file) return file.error();
    all.push_back({"", std::move(*file)});
    return all;
  }
  Result<FoundSnapshot> found = complete_snapshot(path);
  if (!found) return found.error();
  for (const ManifestFile& named : found->manifest.files) {
    if (!named.name.ends_with(".pt")) continue;
    Result<archive::TensorFile> file =
        open_tensor_file(real_files(), found->path + "/" + named.name);
    if (!file) return file.error();
    all.push_back({named.name + "/", std::move(*file)});
  }
  return all;
}

std::string bytes_text(uint64_t bytes) {
  static constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", amount, kUnits[unit]);
  return text;
}

}  // namespace cpprun::ctl

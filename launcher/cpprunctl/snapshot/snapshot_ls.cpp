// The commands that read: ls, show, verify, latest.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/limits/snapshots.hpp"
#include "launcher/cpprunctl/snapshot/snapshot.hpp"
#include "launcher/cpprunctl/snapshot/snapshot_paths.hpp"
#include "launcher/report/text_table.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/archive/tree.hpp"

namespace cpprun {
namespace {

using namespace ctl;
using namespace snapshot_files;
using Json = nlohmann::ordered_json;

constexpr size_t kTextBytes = 60;  // longer texts are cut

std::string quoted(const std::string& text) {
  const bool is_long = text.size() > kTextBytes;
  return "\"" + clean(text.substr(0, kTextBytes)) + (is_long ? "...\"" : "\"");
}

std::string number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

struct Words {
  std::string operator()(const pickle::TensorRef& tensor) const {
    std::string text = tensor.dtype + " [";
    for (size_t i = 0; i < tensor.sizes.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(tensor.sizes[i]);
    }
    return text + "]";
  }
  std::string operator()(const pickle::None&) const { return "None"; }
  std::string operator()(bool value) const { return value ? "bool True" : "bool False"; }
  std::string operator()(int64_t value) const { return "int " + std::to_string(value); }
  std::string operator()(const pickle::BigInt& value) const {
    return "int of " + std::to_string(value.bytes.size()) + " bytes";
  }
  std::string operator()(double value) const { return "float " + number(value); }
  std::string operator()(const std::string& text) const { return "str " + quoted(text); }
  std::string operator()(const pickle::Bytes& value) const {
    return "bytes, " + std::to_string(value.bytes.size());
  }
  std::string operator()(const pickle::List& list) const {
    return "list, " + std::to_string(list.items.size());
  }
  std::string operator()(const pickle::Tuple& tuple) const {
    return "tuple, " + std::to_string(tuple.items.size());
  }
  std::string operator()(const pickle::Dict& dict) const {
    return "dict, " + std::to_string(dict.pairs.size());
  }
  std::string operator()(const pickle::Dtype& dtype) const { return "dtype " + dtype.name; }
  std::string operator()(const pickle::Complex& value) const {
    return "complex " + number(value.real) + " " + number(value.imaginary);
  }
};

// A short description of a value in a tensor file: "float32 [1, 20]", "int 3".
std::string value_text(const pickle::Value& value) { return std::visit(Words(), value.held()); }

void print_json(const Json& json) { print(dump_json(json, 1) + "\n"); }

uint64_t bytes_of(const Manifest& manifest) {
  uint64_t bytes = 0;
  for (const ManifestFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

Result<Catalog> scan_all(const std::string& folder) {
  return scan(real_files(), folder, limits::kSnapshotFolderEntries);
}

Json json_of(const FoundSnapshot& found) {
  return {{"step", found.step},
          {"path", found.path},
          {"complete", true},
          {"epoch", found.manifest.epoch},
          {"world_size", found.manifest.world_size},
          {"saved_at", found.manifest.saved_at},
          {"bytes", bytes_of(found.manifest)},
          {"id", found.manifest.id}};
}

std::string line_of(const FoundSnapshot& found) {
  const Manifest& manifest = found.manifest;
  return snapshot_name(found.step) + "  training epoch " + std::to_string(manifest.epoch) +
         "  world " + std::to_string(manifest.world_size) + "  " + bytes_text(bytes_of(manifest)) +
         (manifest.saved_at.empty() ? "" : "  " + manifest.saved_at) + "\n";
}

Status ls_folder(const SnapshotCommandOptions& options) {
  Result<Catalog> catalog = scan_all(options.path);
  if (!catalog) return catalog.error();
  if (options.is_json) {
    Json all = Json::array();
    for (const FoundSnapshot& found : catalog->complete) all.push_back(json_of(found));
    for (const Incomplete& found : catalog->incomplete) {
      all.push_back(
          {{"step", found.step}, {"path", found.path}, {"complete", false}, {"why", found.why}});
    }
    print_json(all);
    return {};
  }
  for (const FoundSnapshot& found : catalog->complete) print(line_of(found));
  for (const Incomplete& found : catalog->incomplete) {
    print(snapshot_name(found.step) + "  not complete: " + found.why + "\n");
  }
  if (catalog->complete.empty() && catalog->incomplete.empty()) {
    print("no snapshots in " + options.path + "\n");
  }
  return {};
}

Status ls_tensors(const SnapshotCommandOptions& options, PathKind kind) {
  Result<std::vector<NamedFile>> files = open_files(options.path, kind);
  if (!files) return files.error();
  Json all = Json::array();
  for (const NamedFile& named : *files) {
    const std::vector<archive::Leaf> leaves = archive::leaves_of(named.file.value());
    size_t width = 0;
    for (const archive::Leaf& leaf : leaves) width = std::max(width, leaf.path.size());
    for (const archive::Leaf& leaf : leaves) {
      std::string path = named.prefix + clean(leaf.path);
      if (!options.is_json) {
        print(path + std::string(width - leaf.path.size() + 2, ' ') + value_text(*leaf.value) +
              "\n");
        continue;
      }
      const auto* tensor = leaf.value->get_if<pickle::TensorRef>();
      Json entry{{"name", std::move(path)}, {"kind", pickle::kind_name(*leaf.value)}};
      if (tensor != nullptr) {
        entry["dtype"] = tensor->dtype;
        entry["shape"] = tensor->sizes;
      } else {
        entry["value"] = value_text(*leaf.value);
      }
      all.push_back(std::move(entry));
    }
  }
  if (options.is_json) print_json(all);
  return {};
}

Status show_snapshot(const SnapshotCommandOptions& options) {
  Result<FoundSnapshot> found = complete_snapshot(options.path);
  if (!found) return found.error();
  const Manifest& manifest = found->manifest;
  if (options.is_json) {
    print_json(Json::parse(encode(manifest)));
    return {};
  }
  std::string text = "step " + std::to_string(manifest.step) + "  training epoch " +
                     std::to_string(manifest.epoch) + "  world " +
                     std::to_string(manifest.world_size) + "  round " +
                     std::to_string(manifest.round) + "\n";
  text += "id " + manifest.id + "\n";
  const auto add = [&text](const char* name, const std::string& value) {
    if (!value.empty()) text += std::string(name) + " " + value + "\n";
  };
  add("saved", manifest.saved_at);
  add("run", manifest.run_id);
  add("torch", manifest.torch);
  add("cpprun", manifest.cpprun);
  for (const ManifestFile& file : manifest.files) {
    text += "  " + file.name + "  " + bytes_text(file.bytes) + "  crc32 " +
            archive::crc32_text(file.crc32) + "\n";
  }
  for (const std::string& name : manifest.elsewhere) text += "  " + name + "  in another folder\n";
  if (manifest.user != "{}") text += "user " + manifest.user + "\n";
  print(text);
  return {};
}

// Shows a single file: its size, and the values that are not tensors.
Status show_file(const SnapshotCommandOptions& options) {
  Result<archive::TensorFile> file = open_tensor_file(real_files(), options.path);
  if (!file) return file.error();
  Json json{{"path", options.path}, {"tensors", 0}, {"values", Json::object()}};
  size_t tensors = 0;
  uint64_t bytes = 0;
  for (const archive::StorageSize& storage : archive::storages_of(file->value())) {
    bytes += storage.bytes;
  }
  std::string text;
  for (const archive::Leaf& leaf : archive::leaves_of(file->value())) {
    if (leaf.value->get_if<pickle::TensorRef>() != nullptr) {
      ++tensors;
    } else if (leaf.path.find('/') == std::string::npos) {
      json["values"][leaf.path] = value_text(*leaf.value);
      text += clean(leaf.path) + "  " + value_text(*leaf.value) + "\n";
    }
  }
  json["tensors"] = tensors;
  json["bytes"] = bytes;
  if (options.is_json) {
    print_json(json);
  } else {
    print(text + std::to_string(tensors) + " tensors, " + bytes_text(bytes) + "\n");
  }
  return {};
}

struct Checked {
  std::string path;
  Status status;
};

Checked check_snapshot(const std::string& path) {
  Result<FoundSnapshot> found = look_at(real_files(), path);
  if (!found) return {path, Error{ErrorKind::Protocol, "not complete: " + found.error().text}};
  return {path, verify(real_files(), *found)};
}

Result<std::vector<Checked>> check_path(const std::string& path) {
  Result<PathKind> kind = kind_of_path(path);
  if (!kind) return kind.error();
  if (*kind == PathKind::Snapshot) return std::vector{check_snapshot(path)};
  if (*kind == PathKind::File) {
    Result<archive::TensorFile> file = open_tensor_file(real_files(), path);
    return std::vector{Checked{path, file ? file->verify() : Status(file.error())}};
  }
  Result<Catalog> catalog = scan_all(path);
  if (!catalog) return catalog.error();
  std::vector<Checked> all;
  for (const FoundSnapshot& found : catalog->complete) all.push_back(check_snapshot(found.path));
  for (const Incomplete& found : catalog->incomplete) all.push_back(check_snapshot(found.path));
  if (all.empty()) {
    return Error{ErrorKind::BadValue, path + " holds no snapshots (folders called step-<n>)"};
  }
  return all;
}

}  // namespace

Status snapshot_ls(const SnapshotCommandOptions& options) {
  Result<PathKind> kind = kind_of_path(options.path);
  if (!kind) return kind.error();
  return *kind == PathKind::Folder ? ls_folder(options) : ls_tensors(options, *kind);
}

Status snapshot_show(const SnapshotCommandOptions& options) {
  Result<PathKind> kind = kind_of_path(options.path);
  if (!kind) return kind.error();
  if (*kind == PathKind::Snapshot) return show_snapshot(options);
  return *kind == PathKind::File ? show_file(options) : ls_folder(options);
}

Status snapshot_verify(const SnapshotCommandOptions& options) {
  Result<std::vector<Checked>> all = check_path(options.path);
  if (!all) return all.error();
  size_t bad = 0;
  Json json = Json::array();
  for (const Checked& checked : *all) {
    bad += checked.status.ok() ? 0 : 1;
    const std::string why = checked.status.ok() ? "" : checked.status.error().text;
    json.push_back({{"path", checked.path}, {"verified", checked.status.ok()}, {"why", why}});
    if (options.is_json) continue;
    print(checked.path + (why.empty() ? "  verified\n" : "  BAD: " + why + "\n"));
  }
  if (options.is_json) print_json(json);
  if (bad == 0) return {};
  return Error{ErrorKind::Protocol, std::to_string(bad) + " of " + std::to_string(all->size()) +
                                        " did not verify; resume from an older one"};
}

Status snapshot_latest(const SnapshotCommandOptions& options) {
  FileLayer& files = real_files();
  Result<Catalog> catalog = scan(files, options.path, 1);
  if (!catalog) return catalog.error();
  const std::string single = options.path + "/snapshot.pt";
  if (catalog->complete.empty() && files.exists(single) && !options.wants_folder) {
    if (options.is_json)
      print_json({{"path", single}});
    else
      print(single + "\n");
    return {};
  }
  if (catalog->complete.empty()) {
    return Error{ErrorKind::BadValue,
                 options.path + " holds no complete snapshot (cpprunctl snapshot ls shows why)"};
  }
  const FoundSnapshot& found = catalog->complete.front();
  if (options.is_json) {
    print_json(json_of(found));
    return {};
  }
  const std::string file = found.manifest.find(kModelName) == nullptr ? kManifestName : kModelName;
  print(found.path + (options.wants_folder ? "" : "/" + file) + "\n");
  return {};
}

}  // namespace cpprun

#include "snapshot_files/folders/manifest.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "common/check.hpp"
#include "common/json.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/limits/snapshots.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/archive/plain_name.hpp"
#include "snapshot_files/folders/nonce.hpp"

namespace cpprun::snapshot_files {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr size_t kNameBytes = 255;

Error wrong(const std::string& why) {
  return Error{ErrorKind::Protocol, "is no manifest that this version reads: " + why};
}

// Neither a path nor a hidden file, except for the one of torch.distributed.checkpoint.
bool is_file_name(std::string_view name) {
  const bool is_hidden = name.starts_with('.') && name != kDcpMetadataName;
  return archive::is_plain_name(name) && name.size() <= kNameBytes && !is_hidden &&
         name != kManifestName;
}

// Reads fields; keeps the first error: a missing field or a wrong type.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  std::string text(const char* name, bool is_needed = false) {
    const auto found = json_.find(name);
    if (found == json_.end() && !is_needed) return "";
    if (found != json_.end() && found->is_string() &&
        found->get_ref<const std::string&>().size() <= limits::kNameBytes) {
      return found->get<std::string>();
    }
    return fail(name), "";
  }
  int64_t number(const char* name, int64_t least, int64_t most) {
    const auto found = json_.find(name);
    if (found != json_.end() && found->is_number_integer() && !is_above(*found) &&
        found->get<int64_t>() >= least && found->get<int64_t>() <= most) {
      return found->get<int64_t>();
    }
    return fail(name), least;
  }
  const Json* list(const char* name) {
    const auto found = json_.find(name);
    if (found != json_.end() && found->is_array() && found->size() <= limits::kManifestFiles) {
      return &*found;
    }
    return fail(name), nullptr;
  }
  void fail(const std::string& name) {
    if (!bad_) bad_ = name;
  }
  const std::optional<std::string>& bad() const { return bad_; }

 private:
  static bool is_above(const Json& json) {
    return json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX;
  }
  const Json& json_;
  std::optional<std::string> bad_;
};

std::optional<ManifestFile> read_file(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  Fields fields(json);
  ManifestFile file{fields.text("name", true),
                    static_cast<uint64_t>(fields.number("bytes", 0, INT64_MAX)), 0};
  const std::string crc = fields.text("crc32", true);
  if (fields.bad() || !is_file_name(file.name) || crc.size() != 8 || !is_hex(crc)) {
    return std::nullopt;
  }
  file.crc32 = static_cast<uint32_t>(std::stoul(crc, nullptr, 16));
  return file;
}

void read_files(Fields& fields, Manifest& manifest) {
  std::set<std::string> names;
  const Json* list = fields.list("files");
  for (const Json& item : list == nullptr ? Json::array() : *list) {
    std::optional<ManifestFile> file = read_file(item);
    if (!file || !names.insert(file->name).second) return fields.fail("files");
    manifest.files.push_back(std::move(*file));
  }
}

void read_elsewhere(const Json& json, Fields& fields, Manifest& manifest) {
  if (!json.contains("elsewhere")) return;
  const Json* list = fields.list("elsewhere");
  for (const Json& item : list == nullptr ? Json::array() : *list) {
    if (!item.is_string() || !is_file_name(item.get<std::string>())) {
      return fields.fail("elsewhere");
    }
    manifest.elsewhere.push_back(item.get<std::string>());
  }
}

}  // namespace

std::string rank_file_name(int rank) { return "rank-" + std::to_string(rank) + ".pt"; }

const ManifestFile* Manifest::find(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &ManifestFile::name);
  return found == files.end() ? nullptr : &*found;
}

std::string encode(const Manifest& manifest) {
  Json files = Json::array();
  for (const ManifestFile& file : manifest.files) {
    files.push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"crc32", archive::crc32_text(file.crc32)}});
  }
  Json user = parse_json<Json>(manifest.user, limits::kManifestDepth);
  CPPRUN_CHECK(user.is_object());
  const Json json{{"format", kFormat},
                  {"id", manifest.id},
                  {"step", manifest.step},
                  {"epoch", manifest.epoch},
                  {"world_size", manifest.world_size},
                  {"run_id", manifest.run_id},
                  {"round", manifest.round},
                  {"torch", manifest.torch},
                  {"cpprun", manifest.cpprun},
                  {"saved_at", manifest.saved_at},
                  {"files", std::move(files)},
                  {"elsewhere", manifest.elsewhere},
                  {"user", std::move(user)}};
  const std::string text = dump_json(json, 1) + "\n";
  CPPRUN_CHECK(decode_manifest(text).ok());
  return text;
}

Result<Manifest> decode_manifest(std::string_view text) {
  if (text.size() > limits::kManifestBytes) return wrong("it is too large");
  const Json json = parse_json<Json>(text, limits::kManifestDepth);
  if (!json.is_object()) return wrong("it is no JSON object, or nested too deeply");
  Fields fields(json);
  if (fields.number("format", 0, INT64_MAX) != kFormat && !fields.bad()) {
    return wrong("its format is newer than " + std::to_string(kFormat));
  }
  Manifest made;
  made.id = fields.text("id", true);
  made.step = fields.number("step", 0, INT64_MAX);
  made.epoch = fields.number("epoch", 0, INT64_MAX);
  made.world_size = static_cast<int>(fields.number("world_size", 1, INT32_MAX));
  made.round = json.contains("round") ? fields.number("round", 0, INT64_MAX) : 0;
  made.run_id = fields.text("run_id");
  made.torch = fields.text("torch");
  made.cpprun = fields.text("cpprun");
  made.saved_at = fields.text("saved_at");
  read_files(fields, made);
  read_elsewhere(json, fields, made);
  if (made.id.size() != 32 || !is_hex(made.id)) fields.fail("id");
  if (const auto user = json.find("user"); user != json.end()) {
    if (!user->is_object()) fields.fail("user");
    made.user = dump_json(*user);
  }
  if (fields.bad()) return wrong("'" + *fields.bad() + "' is missing or makes no sense");
  return made;
}

}  // namespace cpprun::snapshot_files

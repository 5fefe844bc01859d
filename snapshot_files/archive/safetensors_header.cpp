#include "snapshot_files/archive/safetensors_header.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "common/json.hpp"
#include "common/limits/snapshots.hpp"
#include "common/text.hpp"
#include "snapshot_files/archive/plain_name.hpp"
#include "snapshot_files/pickle/dtype.hpp"

namespace cpprun::archive {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr int kDepth = 3;  // header, tensor, its shape

static_assert(std::endian::native == std::endian::little, "files are read and written as they are");

Error wrong(const std::string& what) { return {ErrorKind::Protocol, what}; }
Error wrong_tensor(const std::string& name, const std::string& what) {
  return wrong("tensor '" + text::printable(name) + "' " + what);
}

// A JSON object without repeated keys at its top. Discarded value: it is something else.
json parse_object(std::string_view bytes, std::string& repeated) {
  std::set<std::string> keys;
  bool is_too_deep = false;
  const auto look = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.insert(key).second) repeated = key;
    }
    is_too_deep = is_too_deep || depth > kDepth;
    return !is_too_deep;
  };
  json object = json::parse(bytes.begin(), bytes.end(), look, /*allow_exceptions=*/false);
  return is_too_deep || !object.is_object() ? json(json::value_t::discarded) : object;
}

const pickle::DtypeInfo* find_safetensors_dtype(const std::string& name) {
  const auto found = std::ranges::find(pickle::kDtypes, name, &pickle::DtypeInfo::safetensors);
  return name.empty() || found == pickle::kDtypes.end() ? nullptr : &*found;
}

// Error: the shape is no list of sizes, or its product does not fit.
Result<int64_t> read_shape(const json& list, std::vector<int64_t>& shape) {
  if (!list.is_array() || list.size() > limits::kTensorDimensions) {
    return wrong("has no shape");
  }
  int64_t numel = 1;
  for (const json& size : list) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX) {
      return wrong("has a size that is no count");
    }
    shape.push_back(size.get<int64_t>());
    if (__builtin_mul_overflow(numel, shape.back(), &numel)) {
      return wrong("has more elements than memory can hold");
    }
  }
  return numel;
}

Result<SafetensorsEntry> read_entry(const std::string& name, const json& fields,
                                    uint64_t data_bytes) {
  SafetensorsEntry entry{.name = name};
  if (!fields.is_object() || !fields.contains("dtype") || !fields["dtype"].is_string()) {
    return wrong_tensor(name, "has no dtype");
  }
  entry.dtype_in_file = fields["dtype"].get<std::string>();
  const json none;
  const Result<int64_t> numel =
      read_shape(fields.contains("shape") ? fields["shape"] : none, entry.shape);
  if (!numel) return wrong_tensor(name, numel.error().text);
  const json& offsets = fields.contains("data_offsets") ? fields["data_offsets"] : none;
  const bool are_two = offsets.is_array() && offsets.size() == 2 &&
                       offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
  if (!are_two) return wrong_tensor(name, "has no data_offsets");
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > data_bytes) {
    return wrong_tensor(name, "lies from byte " + std::to_string(begin) + " to " +
                                  std::to_string(end) + ", but the file has " +
                                  std::to_string(data_bytes) + " bytes of data");
  }
  entry.offset = begin;
  entry.bytes = end - begin;
  const pickle::DtypeInfo* dtype = find_safetensors_dtype(entry.dtype_in_file);
  if (dtype == nullptr) return entry;
  entry.dtype = dtype->name;
  uint64_t wanted = 0;
  const bool is_too_big = __builtin_mul_overflow(static_cast<uint64_t>(*numel),
                                                 static_cast<uint64_t>(dtype->bytes), &wanted);
  if (is_too_big || wanted != entry.bytes) {
    return wrong_tensor(name, "has " + std::to_string(entry.bytes) +
                                  " bytes, which does not fit its shape and dtype " +
                                  entry.dtype_in_file);
  }
  return entry;
}

// Tensors fill the data without gaps and without overlaps.
Status check_layout(std::vector<SafetensorsEntry>& tensors, uint64_t data_bytes) {
  const auto by_place = [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  };
  std::ranges::stable_sort(tensors, by_place);
  uint64_t end = 0;
  for (const SafetensorsEntry& each : tensors) {
    if (each.offset != end) {
      return wrong_tensor(each.name, each.offset < end ? "overlaps another" : "follows a gap");
    }
    end += each.bytes;
  }
  if (end == data_bytes) return {};
  return wrong(std::to_string(data_bytes - end) + " bytes of the data belong to no tensor");
}

Status read_metadata(const json& fields, std::map<std::string, std::string>& metadata) {
  if (!fields.is_object()) return wrong("its __metadata__ is no object");
  for (const auto& [key, value] : fields.items()) {
    if (!value.is_string()) return wrong("its __metadata__ has something else than texts");
    metadata[key] = value.get<std::string>();
  }
  return {};
}

}  // namespace

Result<uint64_t> safetensors_header_bytes(ConstBytes first, uint64_t file_bytes) {
  if (first.size() < kSafetensorsLengthBytes || file_bytes < kSafetensorsLengthBytes) {
    return wrong("it is too short for a safetensors file");
  }
  uint64_t bytes = 0;
  std::memcpy(&bytes, first.data(), sizeof bytes);
  if (bytes > limits::kSafetensorsHeaderBytes) {
    return wrong("its header has " + std::to_string(bytes) + " bytes, at most " +
                 std::to_string(limits::kSafetensorsHeaderBytes) +
                 " are allowed: this is no safetensors file");
  }
  if (bytes > file_bytes - kSafetensorsLengthBytes) return wrong("it ends within its header");
  return bytes;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view bytes, uint64_t file_bytes) {
  const uint64_t front = kSafetensorsLengthBytes + bytes.size();
  if (front > file_bytes) return wrong("it ends within its header");
  std::string repeated;
  const json object = parse_object(bytes, repeated);
  if (object.is_discarded()) return wrong("its header is no JSON object of tensors");
  if (!repeated.empty()) return wrong_tensor(repeated, "stands in the header twice");
  SafetensorsHeader header;
  for (const auto& [name, fields] : object.items()) {
    if (name == kMetadata) {
      if (Status read = read_metadata(fields, header.metadata); !read) return read.error();
      continue;
    }
    Result<SafetensorsEntry> entry = read_entry(name, fields, file_bytes - front);
    if (!entry) return entry.error();
    header.tensors.push_back(std::move(*entry));
  }
  if (Status checked = check_layout(header.tensors, file_bytes - front); !checked) {
    return checked.error();
  }
  for (SafetensorsEntry& each : header.tensors) each.offset += front;
  return header;
}

Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view bytes) {
  std::string repeated;
  const json object = parse_object(bytes, repeated);
  if (object.is_discarded() || !object.contains("weight_map") ||
      !object["weight_map"].is_object()) {
    return wrong("it has no weight_map");
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : object["weight_map"].items()) {
    if (!file.is_string() || !is_plain_name(file.get<std::string>())) {
      return wrong_tensor(name, "has no file of the same folder");
    }
    files[name] = file.get<std::string>();
  }
  return files;
}

Result<std::string> encode_safetensors_header(std::vector<SafetensorsEntry>& tensors,
                                              const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  std::set<std::string_view> names;
  uint64_t at = 0;
  for (SafetensorsEntry& each : tensors) {
    const pickle::DtypeInfo* dtype = pickle::find_dtype(each.dtype);
    if (dtype == nullptr || dtype->safetensors.empty()) {
      return wrong_tensor(each.name,
                          "has the dtype " + each.dtype + ", which safetensors does not have");
    }
    const bool is_reserved = each.name == kMetadata;
    if (is_reserved || !names.insert(each.name).second) {
      return wrong("the name '" + text::printable(each.name) +
                   "' can't stand in a safetensors file" + (is_reserved ? "" : " twice"));
    }
    header[each.name] = {{"dtype", dtype->safetensors},
                         {"shape", each.shape},
                         {"data_offsets", {at, at + each.bytes}}};
    each.offset = at;
    at += each.bytes;
  }
  header[kMetadata] = metadata;
  std::string text = dump_json(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  std::string front(sizeof length, '\0');
  std::memcpy(front.data(), &length, sizeof length);
  for (SafetensorsEntry& each : tensors) each.offset += sizeof length + text.size();
  return front + text;
}

}  // namespace cpprun::archive
